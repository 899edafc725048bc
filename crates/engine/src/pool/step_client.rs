//! The interface between sessions or a recording and the client that carries their requests.

use super::client::Client;
use super::flight::Flight;
use crate::reactor::Backend;
use knee_load::measure::Completion;
use knee_load::session::{Fills, ResponseReaders, SessionPlan};
use knee_load::time::Nanos;

/// A client whose operations are started by sessions, or by a recording. The lane of a step is its
/// session, or the place of a recorded request.
pub(crate) trait StepClient: Client {
    /// Whether a step waits for a connection. Otherwise each session opens its own.
    fn waits(&self) -> bool;

    /// Most operations under way at once.
    fn operations_max(&self) -> u32;

    /// Reads responses from now on, of `sessions` sessions, for what their plan looks for.
    fn read_for(&mut self, plan: &SessionPlan, sessions: usize);

    /// The readers of responses, if any: those that the last ended step has.
    fn readings(&mut self) -> Option<&mut ResponseReaders>;

    /// Values for the holes of a session's next request.
    fn fills(&mut self, session: u32) -> &mut Fills;

    /// Starts a step.
    fn start_step(&mut self, io: &mut dyn Backend, flight: Flight, now: Nanos);

    /// The next ended step, in the order of their ends.
    fn take_step(&mut self) -> Option<Completion>;

    /// Closes the connection of a lane on which nothing is under way.
    fn close_lane(&mut self, io: &mut dyn Backend, lane: u32, now: Nanos);
}
