"""Code tracing: its keys, environments, baselines and groups of results.

``REPLIES`` and ``trace_seeds`` are also for programs that measure tracing without an evaluation.
"""

from gamespiel.kinds.base import Kind
from gamespiel.kinds.traces.baselines import REPLIES
from gamespiel.kinds.traces.declaration import DECLARATION
from gamespiel.kinds.traces.keys import TraceKeys
from gamespiel.kinds.traces.player import TracePlayer, trace_seeds
from gamespiel.kinds.traces.presenter import TracePresenter

__all__ = ["KIND", "REPLIES", "TraceKeys", "trace_seeds"]

KIND = Kind(DECLARATION, TracePlayer(DECLARATION), TracePresenter())
