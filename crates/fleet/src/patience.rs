//! Waits for what is not there yet: in a cluster, NATS, its streams and the agents start together.

use crate::FleetError;
use knee_engine::interrupt;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time between two attempts.
const AGAIN: Duration = Duration::from_millis(500);

/// Willingness to wait for NATS, its streams and agents.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time limit of the wait; 0: what is missing is an error at once.
    pub limit: Duration,
    /// Gets each new reason to wait, as a line for people.
    pub tell: fn(&str),
}

impl Patience {
    /// Attempts it until what it needs is there, the time is over or a signal came.
    ///
    /// # Errors
    /// The last attempt failed, or one for a reason that no time mends.
    pub(crate) fn until_there<T>(
        self,
        mut attempt: impl FnMut() -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        let since = Instant::now();
        let mut told = String::new();
        loop {
            let ended = attempt();
            let Err(FleetError::Gone(why)) = &ended else {
                return ended;
            };
            if since.elapsed() >= self.limit || interrupt::is_raised() {
                return ended;
            }
            if *why != told {
                (self.tell)(&format!("waiting for up to {:.0?}: {why}", self.limit));
                told.clone_from(why);
            }
            sleep(AGAIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(limit: Duration, outcomes: &[Result<(), FleetError>]) -> (u32, bool) {
        let mut count = 0;
        let patience = Patience { limit, tell: |line| assert!(line.contains("no NATS"), "{line}") };
        let ended = patience.until_there(|| {
            count += 1;
            outcomes[(count as usize - 1).min(outcomes.len() - 1)].clone()
        });
        (count, ended.is_ok())
    }

    #[test]
    fn waits_for_what_may_come_and_for_nothing_else() {
        let gone = Err(FleetError::Gone("no NATS".to_owned()));
        let refused = Err(FleetError::Refused("no such login".to_owned()));
        let minute = Duration::from_secs(60);
        assert_eq!(attempts(minute, &[gone.clone(), Ok(())]), (2, true));
        assert_eq!(attempts(minute, &[gone.clone(), refused.clone()]), (2, false));
        assert_eq!(attempts(minute, &[refused]), (1, false));
        assert_eq!(attempts(Duration::ZERO, &[gone]), (1, false));
    }
}
