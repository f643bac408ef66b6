"""FEATURES X8 and SEMANTICS "Rejection and relevance": when the honest answer is that nothing is known."""

from __future__ import annotations

import pytest

from featurekit import HASHING, ask, axis, contents
from memxd.client import Client, rank
from memxd.model import RejectReason


def threshold(client: Client) -> float:
    """The relevance below which the default profile refuses."""
    return client.status().engine.ranking["reject_below"]


def test_x8_no_common_word_and_no_near_meaning_is_no_match(client: Client) -> None:
    """X8: the paper's rule; the answer says rejected, why, and the best relevance seen."""
    client.store("alpha", vector=axis(0, (1, 20.0)), model_id=HASHING)
    answer = ask(client, "zyzzyva", vector=axis(0), model_id=HASHING)
    assert (answer.hits, answer.rejected) == ((), True)
    assert answer.reject_reason is RejectReason.NO_MATCH
    assert 0.0 < answer.best_relevance < threshold(client)
    assert answer.candidates == 1


def test_x8_an_empty_scope_or_filter_is_empty(client: Client) -> None:
    """X8: nothing there to be found is a reason of its own."""
    from memxd.client import where

    assert ask(client, "alpha").reject_reason is RejectReason.EMPTY
    client.store("alpha")
    answer = ask(client, "alpha", filter=where(tags_any=["none"]))
    assert (answer.rejected, answer.reject_reason, answer.best_relevance) == (True, RejectReason.EMPTY, 0.0)


def test_x8_one_common_word_does_not_open_the_door(client: Client) -> None:
    """X8, better: any keyword hit bypassed the rule; "the" and "what" do not."""
    client.store("The cat sleeps on the sofa in the afternoon.", vector=axis(1), model_id=HASHING)
    question = "what is the name of the dentist"
    answer = ask(client, question, vector=axis(0), model_id=HASHING)
    assert answer.rejected
    assert answer.reject_reason is RejectReason.LOW_RELEVANCE
    assert 0.0 < answer.best_relevance < threshold(client)
    assert contents(ask(client, question, vector=axis(0), model_id=HASHING, profile="memx"))  # the paper's rule would


def test_x8_tau_is_the_models_and_the_callers(client: Client) -> None:
    """X8: tau per model (Status), per profile (memx .50) and per request."""
    assert client.status().engine.model.tau == pytest.approx(0.1)
    client.store("alpha", vector=axis(0, (1, 1.75)), model_id=HASHING)  # cosine .496
    options = {"vector": axis(0), "model_id": HASHING}
    assert not ask(client, "zyzzyva", **options).rejected
    assert ask(client, "zyzzyva", profile="memx", **options).reject_reason is RejectReason.NO_MATCH
    assert not ask(client, "zyzzyva", ranking=rank("memx", tau=0.49), **options).rejected
    assert ask(client, "zyzzyva", ranking=rank(tau=0.6), **options).rejected


def test_x8_rejection_can_be_turned_off(client: Client) -> None:
    """X8: not all or nothing: reject=false shows the best there is, with its low relevance."""
    client.store("alpha", vector=axis(0, (1, 20.0)), model_id=HASHING)
    hits = ask(client, "zyzzyva", vector=axis(0), model_id=HASHING, ranking=rank(reject=False)).hits
    assert [h.memory.content for h in hits] == ["alpha"]
    assert hits[0].relevance < threshold(client)


def test_x8_min_relevance_drops_single_hits(client: Client) -> None:
    """SEMANTICS Relevance: min_relevance cuts by hit, not by answer, and says how many."""
    for n in range(5):
        client.store(f"note {n}", vector=axis(0, (n + 1, 0.5 * n)), model_id=HASHING)
    options = {"mode": "vector", "vector": axis(0), "model_id": HASHING, "ranking": rank(reject=False)}
    every = ask(client, "x", **options)
    least = sorted(h.relevance for h in every.hits)[2]
    some = ask(client, "x", min_relevance=least, **options)
    assert [h.memory.id for h in some.hits] == [h.memory.id for h in every.hits if h.relevance >= least]
    assert (some.below_min_relevance, some.rejected) == (2, False)
    none = ask(client, "x", min_relevance=1.0, **options)
    assert (none.hits, none.below_min_relevance, none.best_relevance) == ((), 5, every.best_relevance)


@pytest.mark.model
def test_x8_the_real_model_refuses_what_it_does_not_know(real: Client) -> None:
    """X8: with the model that ships, answered questions are answered and foreign ones refused, in two languages."""
    for text in (
        "Zoë is allergic to penicillin.",
        "The rent is paid on the third of each month.",
        "Joris teaches physics at a secondary school.",
        "我女儿每周六上午十点学钢琴。",
    ):
        real.store(text)
    assert contents(ask(real, "Which medicine must Zoë not take?"))[0] == "Zoë is allergic to penicillin."
    assert contents(ask(real, "孩子什么时候上钢琴课？"))[0] == "我女儿每周六上午十点学钢琴。"
    for question in ("How do I reset a Kubernetes ingress controller?", "量子力学的薛定谔方程怎么推导？"):
        answer = ask(real, question)
        assert answer.rejected, (question, contents(answer), answer.best_relevance)
        assert answer.best_relevance < threshold(real)
