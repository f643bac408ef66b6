package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	memxd "example.com/hello/memxd/v1"
)

func main() {
	conn, err := grpc.NewClient("unix:"+os.Getenv("MEMXD_SOCKET"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	memory := memxd.NewMemoryServiceClient(conn)
	agent := "go-agent"
	scope := &memxd.Scope{AgentId: &agent}
	_, err = memory.Store(ctx, &memxd.StoreRequest{
		Scope:  scope,
		Memory: &memxd.NewMemory{Content: "The staging database is restored every Sunday night."},
	})
	if err != nil {
		log.Fatal(err)
	}
	found, err := memory.Search(ctx, &memxd.SearchRequest{Scope: scope, Query: "when is staging restored?"})
	if err != nil {
		log.Fatal(err)
	}
	if found.Rejected {
		fmt.Println("nothing known")
	}
	for _, hit := range found.Hits {
		fmt.Printf("%.2f  %s\n", hit.Relevance, hit.Memory.Content)
	}
}
