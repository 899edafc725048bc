//! Programs that end with this process, however it ends.

use knee_engine::interrupt;
use knee_engine::sys::guard::{self, Leftovers, Lifeline};
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// Time between two looks at whether a program has ended.
const TICK: Duration = Duration::from_millis(10);

/// A running program. It ends with this value, and so do all that it started.
#[derive(Debug)]
pub struct GuardedProgram {
    lifeline: Option<Lifeline>,
    pub child: Child,
}

impl GuardedProgram {
    /// Starts a program in a process group of its own.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command) -> io::Result<GuardedProgram> {
        let lifeline = guard::put_before(command, Leftovers::End)?;
        Ok(GuardedProgram { lifeline: Some(lifeline), child: command.spawn()? })
    }

    /// Waits for its end. A signal that asks this process to end asks the program likewise.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let mut is_asked = false;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if interrupt::is_raised() && !is_asked {
                self.lifeline.iter().for_each(Lifeline::terminate);
                is_asked = true;
            }
            std::thread::sleep(TICK);
        }
    }
}

impl Drop for GuardedProgram {
    fn drop(&mut self) {
        self.lifeline = None;
        // It has ended, or is being killed.
        let _ = self.child.wait();
    }
}
