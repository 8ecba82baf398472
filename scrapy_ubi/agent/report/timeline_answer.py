"""The answer of an agent to the question for its history: its timeline, as far back and as fine as it is asked for.

Rules of this module:

* An answer is bounded: by the rows that are asked for, and by what rows and events may have (`MOST_ROWS`,
  `MOST_EVENTS`). It is made of what is in memory, or was read of the directory of an agent that has stopped.
"""

from __future__ import annotations

from scrapy_ubi.agent.report.answers_under_way import Answer
from scrapy_ubi.agent.report.queries import Question
from scrapy_ubi.agent.report.timeline import Timeline, row


def answer(question: Question, agent: str, timeline: Timeline, now: float) -> Answer:
    """The timeline of this agent at this time (unix s). `step`: seconds that each row stands for, 0: as it was
    taken."""
    begin = now - question.span if question.span else 0.0
    step, samples = timeline.since(begin, question.limit)
    rows = [row(sample) for sample in samples]
    events = [row(event) for event in timeline.events if event.time >= begin]
    return {"agent": agent, "ask": question.ask, "step": step, "rows": rows, "events": events}
