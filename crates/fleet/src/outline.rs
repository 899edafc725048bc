//! What was asked for, without what nobody else may know: what is stored of a trial.

use knee_core::spec::{Body, TrialSpec};
use std::sync::Arc;

/// The spec without headers, bodies, queries, data and values of templates: they may be secrets,
/// and no figure depends on them.
pub(crate) fn outline(spec: &TrialSpec) -> TrialSpec {
    let mut spec = spec.clone();
    for request in &mut spec.target.requests {
        request.headers.clear();
        request.holes.clear();
        request.body = Body::default();
        if let Some(query) = request.path.find('?') {
            request.path.truncate(query);
        }
    }
    if let Some(plan) = &mut spec.target.sessions {
        let plan = Arc::make_mut(plan);
        plan.data.clear();
        for step in &mut plan.requests {
            step.fills.clear();
            step.expect.clear();
            step.extract.clear();
        }
        for kind in &mut plan.kinds {
            kind.data.clear();
            kind.program.clear();
        }
    }
    spec
}
