//! What all steps together settle: thresholds of steps that there are, and common settings.

use super::{Imported, ImportedRequest};
use knee_core::threshold::Threshold;
use std::collections::HashSet;

impl Imported {
    /// Takes the thresholds whose step or session there is.
    pub(super) fn take_thresholds(&mut self, thresholds: Vec<String>) {
        let mut requests = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        for session in &mut self.sessions {
            names.insert(session.name.clone());
            session.steps.iter().for_each(|step| step.groups(&mut names));
            session.steps.iter_mut().for_each(|step| step.requests(&mut requests));
        }
        let own_name = |request: &&mut ImportedRequest| {
            let path = request.path.template();
            request.name.clone().unwrap_or_else(|| format!("{} {path}", request.method))
        };
        names.extend(requests.iter().map(own_name));
        for text in thresholds {
            let of = Threshold::parse(&text).ok().and_then(|t| t.of().map(str::to_owned));
            match of.filter(|of| !names.contains(of)) {
                Some(of) => {
                    self.left_out.push(format!("threshold {text}: there is no step '{of}'"));
                }
                None if self.fail_if.contains(&text) => {}
                None => self.fail_if.push(text),
            }
        }
    }

    /// What all of several requests have is written once.
    pub(super) fn gather_defaults(&mut self) {
        let mut all = Vec::new();
        let sessions = self.sessions.iter_mut().flat_map(|session| &mut session.steps);
        let steps = sessions.chain(&mut self.setup).chain(&mut self.teardown);
        steps.for_each(|step| step.requests(&mut all));
        let Some((first, others)) = all.split_first_mut().filter(|(_, o)| !o.is_empty()) else {
            return;
        };
        let mut common = first.headers.clone();
        common.retain(|header| others.iter().all(|other| other.headers.contains(header)));
        let (redirects, timeout) = (first.redirects, first.timeout);
        let same_redirects = others.iter().all(|other| other.redirects == redirects);
        let same_timeout = others.iter().all(|other| other.timeout == timeout);
        for request in all {
            request.headers.retain(|header| !common.contains(header));
            if same_redirects {
                request.redirects = 0;
            }
            if same_timeout {
                request.timeout = None;
            }
        }
        self.headers = common;
        self.redirects = if same_redirects { redirects } else { 0 };
        self.timeout = timeout.filter(|_| same_timeout);
    }
}
