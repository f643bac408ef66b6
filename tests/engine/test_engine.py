"""The verbs together, in process: what is acknowledged is found, by both legs, at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memxd.engine import Engine
from memxd.errors import (
    DuplicateMemoryError,
    InvalidArgumentError,
    MemoryNotFoundError,
    MemxdError,
    RequestIdReusedError,
    RevisionMismatchError,
)
from memxd.model import (
    DAY,
    SECOND,
    Filter,
    LinkType,
    Mode,
    NewMemory,
    Patch,
    Profile,
    Ranking,
    RejectReason,
    Scope,
    SearchQuery,
    State,
    StoreAnswer,
)

A = Scope("a", "u")
B = Scope("b", "u")


def _found(engine: Engine, query: str, scope: Scope = A, **more: object) -> list[str]:
    return [h.memory.content for h in engine.search(SearchQuery(scope, query, **more)).hits]  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.VECTOR, Mode.KEYWORD])
def test_what_store_answered_the_next_search_finds(engine: Engine, mode: Mode) -> None:
    engine.store(A, NewMemory("The notice period of the flat is two months"))
    engine.store(A, NewMemory("Milk and bread are on the shopping list"))
    assert _found(engine, "how long is the notice period", mode=mode)[0].startswith("The notice period")


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.VECTOR, Mode.KEYWORD])
def test_an_update_replaces_the_old_text_in_both_legs(engine: Engine, mode: Mode) -> None:
    stored = engine.store(A, NewMemory("Her age is forty one years")).memory
    engine.update(A, stored.id, Patch(frozenset({"content"}), content="Her age is fifty three years"))
    assert _found(engine, "age forty one years", mode=mode) == ["Her age is fifty three years"]
    assert _found(engine, "fifty three", mode=mode) == ["Her age is fifty three years"]
    assert _found(engine, "forty", mode=Mode.KEYWORD) == []


def test_a_deleted_memory_is_gone_from_every_call(engine: Engine) -> None:
    stored = engine.store(A, NewMemory("The spare key is under the blue pot")).memory
    engine.delete(A, stored.id)
    assert _found(engine, "where is the spare key") == []
    assert engine.count(A, Filter())[0] == 0
    with pytest.raises(MemoryNotFoundError):
        engine.get(A, stored.id)
    with pytest.raises(MemoryNotFoundError):
        engine.delete(A, stored.id)


def test_scopes_do_not_see_each_other(engine: Engine) -> None:
    mine = engine.store(A, NewMemory("The alarm code is on the fridge")).memory
    assert _found(engine, "alarm code", scope=B) == []
    for call in (
        lambda: engine.get(B, mine.id),
        lambda: engine.delete(B, mine.id),
        lambda: engine.update(B, mine.id, Patch(frozenset({"content"}), content="x")),
        lambda: engine.traverse(B, mine.id),
        lambda: engine.list_links(B, mine.id),
    ):
        with pytest.raises(MemoryNotFoundError):
            call()
    assert engine.get(A, mine.id)[0].content == mine.content


def test_an_equal_text_is_one_row_and_different_dates_are_two(engine: Engine) -> None:
    first = engine.store(A, NewMemory("The report is due Oct 15", tags=("work",)))
    again = engine.store(A, NewMemory("  The report is due Oct 15 ", tags=("report",), metadata={"k": 1}))
    other = engine.store(A, NewMemory("The report is due Oct 16"))
    assert again.deduplicated
    assert again.memory.id == first.memory.id
    assert again.memory.tags == ("report", "work")
    assert again.memory.metadata == {"k": 1}
    assert not other.deduplicated
    assert set(_found(engine, "when is the report due")) == {"The report is due Oct 15", "The report is due Oct 16"}


def test_allow_duplicate_stores_it_again_and_search_folds_it(engine: Engine) -> None:
    engine.store(A, NewMemory("The report is due Oct 15"))
    engine.store(A, NewMemory("The report is due Oct 15", allow_duplicate=True))
    answer = engine.search(SearchQuery(A, "report due", explain=True))
    assert len(answer.hits) == 1
    assert answer.folded == 1
    assert answer.hits[0].explanation is not None
    assert len(answer.hits[0].explanation.folded_ids) == 1


def test_a_repeated_request_id_gives_the_same_answer(engine: Engine) -> None:
    one = engine.store(A, NewMemory("Tea at four"), "r-1")
    engine.store(A, NewMemory("Something else"))
    two = engine.store(A, NewMemory("Tea at four"), "r-1")
    assert one == two
    assert engine.count(A, Filter())[0] == 2
    with pytest.raises(RequestIdReusedError):
        engine.store(A, NewMemory("Tea at five"), "r-1")
    assert engine.store(B, NewMemory("Tea at five"), "r-1").memory.scope == B


def test_a_retry_after_the_memory_was_deleted_does_not_bring_it_back(engine: Engine) -> None:
    one = engine.store(A, NewMemory("Tea at four"), "r-1")
    engine.delete(A, one.memory.id)
    with pytest.raises(MemoryNotFoundError):
        engine.store(A, NewMemory("Tea at four"), "r-1")
    assert engine.count(A, Filter())[0] == 0


def test_request_ids_survive_a_restart(open_engine: Callable[[], Engine]) -> None:
    engine = open_engine()
    one = engine.store(A, NewMemory("Tea at four"), "r-1")
    engine.close()
    assert open_engine().store(A, NewMemory("Tea at four"), "r-1") == one


def test_superseding_hides_the_old_and_as_of_shows_it(engine: Engine, clock) -> None:  # type: ignore[no-untyped-def]
    old = engine.store(A, NewMemory("Lives in the old town, Elm Street 5", event_at=clock() - 400 * DAY)).memory
    new = engine.store(
        A, NewMemory("Lives by the river, Quay Road 9", event_at=clock() - 30 * DAY, supersedes=(old.id,))
    ).memory
    assert _found(engine, "lives road", mode=Mode.KEYWORD) == [new.content]
    assert engine.get(A, old.id)[0].superseded_by == new.id
    assert engine.get(A, old.id)[0].valid_until == new.event_at
    then = clock() - 100 * DAY
    assert _found(engine, "lives street", as_of=then) == [old.content]
    assert set(_found(engine, "lives street road", include_superseded=True)) == {old.content, new.content}
    engine.delete(A, new.id)
    assert _found(engine, "lives street") == [old.content]
    assert engine.get(A, old.id)[0].state is State.ACTIVE


def test_an_expired_memory_is_out_unless_asked_for(engine: Engine, clock) -> None:  # type: ignore[no-untyped-def]
    engine.store(A, NewMemory("The parking permit holds this week", valid_until=clock() + 7 * DAY))
    assert _found(engine, "parking permit")
    clock.forward(8 * DAY)
    assert _found(engine, "parking permit") == []
    assert _found(engine, "parking permit", filter=Filter(states=frozenset({State.ACTIVE})))


def test_expected_revision_guards_an_update(engine: Engine) -> None:
    stored = engine.store(A, NewMemory("Version one")).memory
    changed = engine.update(A, stored.id, Patch(frozenset({"importance"}), importance=0.9), stored.revision).memory
    with pytest.raises(RevisionMismatchError):
        engine.update(A, stored.id, Patch(frozenset({"importance"}), importance=0.1), stored.revision)
    assert engine.get(A, stored.id)[0] == changed


def test_an_update_may_not_make_two_rows_equal(engine: Engine) -> None:
    one = engine.store(A, NewMemory("Likes tea")).memory
    two = engine.store(A, NewMemory("Likes coffee")).memory
    with pytest.raises(DuplicateMemoryError) as error:
        engine.update(A, two.id, Patch(frozenset({"content"}), content="Likes tea"))
    assert error.value.metadata["id"] == one.id


def test_archiving_and_back(engine: Engine) -> None:
    stored = engine.store(A, NewMemory("The bike is in the cellar")).memory
    engine.update(A, stored.id, Patch(frozenset({"state"}), state=State.ARCHIVED))
    assert _found(engine, "bike cellar") == []
    engine.update(A, stored.id, Patch(frozenset({"state"}), state=State.ACTIVE))
    assert _found(engine, "bike cellar") == [stored.content]


def test_an_empty_scope_says_so(engine: Engine) -> None:
    answer = engine.search(SearchQuery(A, "anything at all"))
    assert (answer.hits, answer.rejected, answer.reject_reason) == ((), True, RejectReason.EMPTY)


def test_one_common_word_does_not_make_an_answer(open_real_engine: Callable[[], Engine]) -> None:
    engine = open_real_engine()
    for text in ("The dog sleeps in the garden", "The rent is paid on the first", "The printer needs toner"):
        engine.store(A, NewMemory(text))
    answer = engine.search(SearchQuery(A, "what is the capital of Mongolia"))
    assert answer.rejected
    assert answer.hits == ()
    assert 0.0 < answer.best_relevance < 0.15


def test_a_memory_behind_sixty_thousand_characters_is_found(engine: Engine) -> None:
    filler = " ".join(f"Paragraph {n} speaks of weather and traffic." for n in range(1_350))
    engine.store(A, NewMemory(f"{filler} The safe opens with seven three nine."))
    for n in range(40):
        engine.store(A, NewMemory(f"Note {n}: an ordinary remark about gardens"))
    question = "The safe opens with seven three nine"
    hits = engine.search(SearchQuery(A, question, mode=Mode.VECTOR, ranking=Ranking(reject=False), explain=True)).hits
    assert hits[0].memory.content.endswith("seven three nine.")
    assert hits[0].explanation is not None
    assert (hits[0].explanation.chunk or 0) > 0


def test_private_spans_are_kept_but_not_found(engine: Engine) -> None:
    stored = engine.store(A, NewMemory("The locker is number 12 <private>combination zebra</private>")).memory
    assert _found(engine, "zebra", mode=Mode.KEYWORD) == []
    assert _found(engine, "locker", mode=Mode.KEYWORD) == [stored.content]


def test_links_walk_and_expand(engine: Engine) -> None:
    ids = [engine.store(A, NewMemory(t)).memory.id for t in ("Alpha starts", "Beta follows", "Gamma ends")]
    engine.create_link(A, ids[0], ids[1], LinkType.RELATED, 0.9)
    engine.create_link(A, ids[1], ids[2], LinkType.CAUSED_BY, 0.5)
    walk = engine.traverse(A, ids[0], max_depth=2)
    assert [(t.memory.id, t.depth, round(t.path_strength, 2)) for t in walk.memories] == [
        (ids[1], 1, 0.9),
        (ids[2], 2, 0.45),
    ]
    hits = engine.search(SearchQuery(A, "Alpha", mode=Mode.KEYWORD, expand_links=1)).hits
    assert [(h.memory.id, h.expanded, h.expanded_from) for h in hits] == [(ids[0], False, ""), (ids[1], True, ids[0])]


def test_counts_of_access_and_retrieval_are_kept_apart(engine: Engine) -> None:
    stored = engine.store(A, NewMemory("The vet is called Marlow")).memory
    engine.search(SearchQuery(A, "vet Marlow"))
    engine.search(SearchQuery(A, "vet Marlow", record_retrieval=False))
    engine.get(A, stored.id)
    engine.get(A, stored.id, record_access=False)
    seen = engine.get(A, stored.id, record_access=False)[0]
    assert (seen.access_count, seen.retrieval_count) == (1, 1)
    assert seen.revision == stored.revision


def test_memex_ranks_by_cosine_and_age(engine: Engine, clock) -> None:  # type: ignore[no-untyped-def]
    engine.store(A, NewMemory("coffee in the morning"))
    clock.forward(300 * DAY)
    engine.store(A, NewMemory("coffee in the evening"))
    wish = Ranking(profile=Profile.MEMEX, alpha=0.0)
    answer = engine.search(SearchQuery(A, "coffee in the morning", ranking=wish, explain=True))
    assert answer.hits[0].memory.content == "coffee in the evening"
    assert answer.hits[0].score == pytest.approx(1.0)


def test_without_weight_on_relevance_the_whole_scope_is_ranked(engine: Engine) -> None:
    for n in range(5):
        engine.store(A, NewMemory(f"Item number {n}", importance=n / 10))
    wish = Ranking(semantic=0.0, recency=0.0, frequency=0.0, importance=1.0)
    answer = engine.search(SearchQuery(A, "unrelated question", ranking=wish))
    assert [h.memory.importance for h in answer.hits] == [0.4, 0.3, 0.2, 0.1, 0.0]


def test_one_bad_item_of_a_stream_does_not_spoil_the_rest(engine: Engine) -> None:
    items = [(A, NewMemory("good one"), ""), (A, NewMemory("  "), ""), (A, NewMemory("good two"), "")]
    answers = list(engine.store_many(items))
    assert [isinstance(a, StoreAnswer) for a in answers] == [True, False, True]
    assert isinstance(answers[1], InvalidArgumentError)
    assert engine.count(A, Filter())[0] == 2


def test_pages_hand_out_each_memory_once(engine: Engine) -> None:
    list(engine.store_many((A, NewMemory(f"memory {n}"), "") for n in range(130)))
    seen: list[str] = []
    token = ""
    while True:
        page = engine.list(A, Filter(), page_size=50, page_token=token)
        seen += [m.content for m in page.memories]
        token = page.next_page_token
        if not token:
            break
    assert sorted(seen) == sorted(f"memory {n}" for n in range(130))


def test_deleting_a_scope_counts_truly_and_leaves_the_other(engine: Engine) -> None:
    for scope in (A, B):
        list(engine.store_many((scope, NewMemory(f"memory {n}"), "") for n in range(30)))
    assert engine.delete_many(A, Filter(), dry_run=True)[0] == 30
    assert engine.delete_many(A, Filter())[0] == 30
    assert engine.count(A, Filter())[0] == 0
    assert engine.count(B, Filter())[0] == 30
    assert len(_found(engine, "memory 7", scope=B)) > 0


def test_everything_is_there_after_a_restart(open_engine: Callable[[], Engine]) -> None:
    engine = open_engine()
    engine.store(A, NewMemory("The cat is called Miso"))
    engine.close()
    again = open_engine()
    for mode in (Mode.VECTOR, Mode.KEYWORD):
        assert _found(again, "cat called Miso", mode=mode) == ["The cat is called Miso"]


def test_the_same_search_gives_the_same_answer(engine: Engine) -> None:
    list(
        engine.store_many((A, NewMemory(f"note {n % 9} on topic {n % 5}", allow_duplicate=True), "") for n in range(60))
    )
    ask = SearchQuery(A, "note on topic 3", k=20, record_retrieval=False)
    assert engine.search(ask) == engine.search(ask)


def test_old_exact_answers_are_not_buried_by_fresh_noise(engine: Engine, clock) -> None:  # type: ignore[no-untyped-def]
    engine.store(A, NewMemory("The wifi password of the cabin is trout lake 88"))
    clock.forward(365 * DAY)
    list(engine.store_many((A, NewMemory(f"Fresh remark {n} about the cabin roof"), "") for n in range(300)))
    clock.forward(SECOND)
    assert _found(engine, "what is the wifi password of the cabin")[0].startswith("The wifi password")


def test_search_many_answers_each_on_its_own(engine: Engine) -> None:
    engine.store(A, NewMemory("The vet is called Marlow"))
    answers = engine.search_many([SearchQuery(A, "vet Marlow"), SearchQuery(A, " "), SearchQuery(B, "vet")])
    assert [isinstance(a, MemxdError) for a in answers] == [False, True, False]
