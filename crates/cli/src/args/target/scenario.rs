//! A scenario file in the place of a URL.

use super::TargetArgs;
use crate::args::first_given;
use crate::failure::Failure;
use crate::input;
use knee_load::spec::{Endpoint, FurtherServer, Pick, Target};
use knee_scenario::Scenario;
use std::sync::Arc;

impl TargetArgs {
    /// The scenario, where the URL names one; its files are read the first time.
    pub fn scenario(&mut self) -> Result<Option<Arc<Scenario>>, Failure> {
        if let (None, Some(file)) = (&self.scenario, &self.url)
            && input::is_scenario(file)
        {
            self.refuse_options_of_urls(
                "each step of a scenario has its own: write it in the file",
            )?;
            let scenario = if input::is_script(file) {
                self.script.scenario(file)?
            } else {
                input::read_scenario(file)?
            };
            let connections = &scenario.connections;
            self.no_keepalive |= connections.no_reuse;
            self.protocol.take_any_certificate(connections.any_certificate);
            self.route.resolve_first(&connections.resolve);
            self.check_programs(file, &scenario)?;
            self.scenario = Some(Arc::new(scenario));
        }
        Ok(self.scenario.clone())
    }

    /// The keys under the scenario's `load` that an experiment with a load of its own does not use,
    /// in a line. `None` without such keys. `takes_arrival`: it uses the arrival process.
    pub fn unused_load(&self, experiment: &str, takes_arrival: bool) -> Option<String> {
        let load = self.scenario.as_ref()?.load.as_ref()?;
        let given = [
            ("rate", load.rate.is_some()),
            ("arrival", load.arrival.is_some() && !takes_arrival),
            ("stages", !load.stages.is_empty()),
            ("vusers", load.vusers.is_some()),
            ("duration", load.duration.is_some()),
            ("warmup", load.warmup.is_some()),
        ];
        let given = given.iter().filter(|(_, is_given)| *is_given);
        let names: Vec<&str> = given.map(|(name, _)| *name).collect();
        let file = self.url.as_deref().unwrap_or_default();
        (!names.is_empty()).then(|| {
            format!(
                "note: {file}: {experiment} sets its own load and ignores these keys of 'load': {}",
                names.join(", ")
            )
        })
    }

    /// A scenario may come from anybody: what it starts is up to the command line.
    fn check_programs(&self, file: &str, scenario: &Scenario) -> Result<(), Failure> {
        match scenario.plan.programs.first() {
            Some(program) if !self.allow_exec => {
                let (line, column) = program.at;
                let wrong = format!(
                    "{file}:{line}:{column}: exec starts the program '{}': permit that with \
                     --allow-exec",
                    program.name
                );
                Err(Failure::input(wrong))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what needs files while the load runs, where a fleet makes it.
    pub fn refuse_files_of_a_fleet(&self) -> Result<(), Failure> {
        if self.recorded.is_some() {
            let wrong = "agents do not have the recording: send it again from one machine";
            return Err(Failure::argument("--fleet", wrong));
        }
        let programs = self.scenario.iter().flat_map(|s| &s.plan.programs);
        match programs.map(|program| program.at).next() {
            None => Ok(()),
            Some((line, column)) => {
                let file = self.url.as_deref().unwrap_or_default();
                let wrong = format!(
                    "the scenario starts programs ({file}:{line}:{column}: exec), and agents have \
                     no files: run it on one machine"
                );
                Err(Failure::argument("--fleet", wrong))
            }
        }
    }

    /// What the scenario loads.
    pub(super) fn target_of(&self, scenario: &Scenario) -> Result<Target, Failure> {
        let [first, further @ ..] = &scenario.servers[..] else {
            return Err(Failure::argument("URL", "the scenario has no target"));
        };
        let endpoint = match &self.unix_socket {
            Some(_) if !further.is_empty() => {
                let wrong = "is one server, and the scenario has several targets: leave it out";
                return Err(Failure::argument("--unix-socket", wrong));
            }
            Some(path) => Endpoint::Unix { path: path.clone() },
            None => first.endpoint().clone(),
        };
        let requests = scenario.requests.iter().cloned();
        let requests = requests.map(|request| self.with_headers(request, None));
        let requests = requests.collect::<Result<_, _>>()?;
        let target = Target::new(endpoint, requests, Pick::InOrder, !self.no_keepalive)
            .map_err(|e| Failure::argument("URL", e))?;
        let schemes = scenario.servers.iter().map(|url| url.scheme());
        let further = further.iter().map(|url| FurtherServer {
            proxy: None,
            endpoint: url.endpoint().clone(),
            host: url.host().to_owned(),
            tls: url.is_secure().then(Box::default),
        });
        let (sessions, further) = (Some(Arc::new(scenario.plan.clone())), further.collect());
        let target = Target { sessions, further, ..target };
        let target = self.route.apply(target, schemes)?;
        let mut target = self.speak(self.messages.apply_bounds(target), first.scheme())?;
        let secure = scenario.servers.iter().filter(|url| url.is_secure());
        for (tls, url) in target.tls_of_servers().zip(secure) {
            let host = match url.endpoint() {
                Endpoint::Tcp { host, .. } => host,
                Endpoint::Unix { .. } => url.host(),
            };
            let own = scenario.connections.certificates.iter().find(|own| own.fits(host));
            tls.certificate = tls.certificate.take().or(own.map(|own| own.certificate.clone()));
        }
        Ok(target)
    }

    /// Refuses options on single requests, as `wrong` says.
    pub(super) fn refuse_options_of_urls(&self, wrong: &str) -> Result<(), Failure> {
        let given = first_given(&[
            (self.method.is_some(), "--method"),
            (self.body.is_some(), "--body"),
            (self.content_type.is_some(), "--content-type"),
            (self.pick == Pick::Weighted, "--pick"),
        ]);
        if let Some(option) = (given.or(self.curl.of_one_request()).or(self.expect.given()))
            .or(self.messages.given())
            .or(self.messages.given_of_calls())
        {
            return Err(Failure::argument(option, wrong));
        }
        let is_cookie = |header: &(String, String)| header.0.eq_ignore_ascii_case("cookie");
        if self.header.iter().any(is_cookie) {
            let wrong = "a session has cookies of its own: write Cookie in the scenario's headers";
            return Err(Failure::argument("--header", wrong));
        }
        Ok(())
    }
}
