//! The cost of a session and the trace of its turn.

use crate::spans::TurnTrace;
use crate::turn::usage::SessionCost;

#[derive(Debug, Default)]
pub(crate) struct TurnMeasures {
    cost: SessionCost,
    /// The trace of the current turn, here or in a process that died; `None` on a host that measures nothing.
    trace: Option<TurnTrace>,
}

impl TurnMeasures {
    /// Takes over the stored sum.
    pub(super) fn adopt_cost(&self, cost_usd: f64) {
        self.cost.set(cost_usd);
    }

    /// Adds the cost of a request beside the turns.
    pub(super) fn add_cost(&self, cost_usd: Option<f64>) {
        self.cost.add(cost_usd);
    }

    /// The sum, which turns add to.
    pub(super) fn cost(&self) -> SessionCost {
        self.cost.clone()
    }

    pub(super) fn begin_trace(&mut self, trace: Option<TurnTrace>) {
        self.trace = trace;
    }

    pub(super) fn trace(&self) -> Option<&TurnTrace> {
        self.trace.as_ref()
    }

    pub(super) fn take_trace(&mut self) -> Option<TurnTrace> {
        self.trace.take()
    }
}
