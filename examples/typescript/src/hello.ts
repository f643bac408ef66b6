import { credentials } from "@grpc/grpc-js";
import { MemoryServiceClient, SearchRequest, StoreRequest } from "./gen/memxd/v1/memory_service";

const memory = new MemoryServiceClient(`unix:${process.env.MEMXD_SOCKET}`, credentials.createInsecure());
const scope = { agentId: "ts-agent" };

const fact = StoreRequest.fromPartial({ scope, memory: { content: "Deploys are frozen from 20 December on." } });
memory.store(fact, (refused) => {
  if (refused) throw refused;
  const question = SearchRequest.fromPartial({ scope, query: "when are deploys frozen?" });
  memory.search(question, (refused, found) => {
    if (refused) throw refused;
    if (found.rejected) console.log("nothing known");
    for (const hit of found.hits) console.log(hit.relevance.toFixed(2), hit.memory?.content);
    memory.close();
  });
});
