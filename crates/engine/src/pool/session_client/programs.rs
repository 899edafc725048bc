//! Programs beside one worker, and their open questions.

use crate::error::{RunError, reason};
use crate::program::ChildProgram;
use knee_load::measure::ProgramsMeasured;
use knee_load::session::{Instruction, ProgramAnswer, SessionPlan};
use knee_load::spec::{Question, Target};
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Most open questions of one program, including those of steps that have failed since.
const OPEN_MAX: usize = 65_536;

/// Time limit of a program's first answer, before any load.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// Pause before a line that a full pipe refused is offered again.
const RETRY: Nanos = Nanos::from_millis(1);

/// The programs of one worker.
pub(super) struct Programs {
    asked: Vec<WorkerProgram>,
    /// Questions by request, where it asks one.
    questions: Box<[Option<Question>]>,
    /// Whether sessions of each kind ask programs.
    asking_kinds: Box<[bool]>,
    /// The number of the last question.
    last_id: u64,
    /// Sessions that need not wait any longer.
    pub(super) settled: Vec<u32>,
    /// Ends of the sessions' waits, with the number of the question.
    pub(super) limits: BinaryHeap<Reverse<(Nanos, u32, u64)>>,
    pub(super) line: Vec<u8>,
    pub(super) measured: ProgramsMeasured,
}

/// One program.
struct WorkerProgram {
    /// `None` before its start and after its end.
    running: Option<ChildProgram>,
    /// Open questions in order, with their sessions; `None` for one that was answered before an
    /// earlier one.
    open: VecDeque<(u64, Option<u32>)>,
}

/// An answer to a question of a session, or why there is no usable one.
pub(super) type ProgramReply = (u32, u64, Result<ProgramAnswer, String>);

impl Programs {
    /// Programs of this target, not yet started; `None` if no step asks any.
    pub(super) fn new(plan: &SessionPlan, target: &Target) -> Option<Box<Programs>> {
        if plan.programs.is_empty() {
            return None;
        }
        let asks = |request: u32| {
            let step = plan.requests.get(request as usize);
            step.is_some_and(|step| step.ask.is_some())
        };
        let steps = plan.requests.iter().zip(&target.requests);
        let questions = steps.map(|(step, request)| {
            step.ask.as_ref()?;
            let kind = plan.kinds.get(usize::from(step.kind))?;
            Some(Question::new(request, &kind.name, &step.name))
        });
        let asking = plan.kinds.iter().map(|kind| {
            let mut steps = kind.program.iter();
            steps.any(|step| matches!(step, Instruction::Request(request) if asks(*request)))
        });
        let asked =
            plan.programs.iter().map(|_| WorkerProgram { running: None, open: VecDeque::new() });
        Some(Box::new(Programs {
            asked: asked.collect(),
            questions: questions.collect(),
            asking_kinds: asking.collect(),
            last_id: 0,
            settled: Vec::new(),
            limits: BinaryHeap::new(),
            line: Vec::new(),
            measured: ProgramsMeasured::ready(),
        }))
    }

    /// Whether sessions of this kind ask programs.
    pub(super) fn asks(&self, kind: u16) -> bool {
        self.asking_kinds[usize::from(kind)]
    }

    /// The question of a request's step, if any.
    pub(super) fn question(&self, request: u32) -> Option<&Question> {
        self.questions.get(request as usize)?.as_ref()
    }

    /// The number of the next question.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Starts all programs and waits for one answer of each, so that the load finds them ready.
    /// Returns the descriptors to watch: two for each.
    pub(super) fn start(
        &mut self,
        plan: &SessionPlan,
        stop: &AtomicBool,
    ) -> Result<Vec<std::os::fd::OwnedFd>, RunError> {
        let mut outputs = Vec::new();
        for (number, (asked, program)) in self.asked.iter_mut().zip(&plan.programs).enumerate() {
            let not_started = |e: std::io::Error| {
                let (name, (line, _)) = (&program.name, program.at);
                RunError::NotStarted(format!(
                    "exec {name} (line {line}) could not be started: {}: it has to be executable, \
                     and begin with a line such as #!/usr/bin/env python3",
                    reason(&e)
                ))
            };
            let mut running = ChildProgram::start(program).map_err(not_started)?;
            outputs.extend(running.outputs().map_err(not_started)?);
            let mut steps = plan.requests.iter().zip(&self.questions);
            let first = steps.find_map(|(step, question)| {
                let ask = step.ask.as_ref()?;
                let is_its_own = usize::from(ask.program) == number;
                Some((ask, question.as_ref().filter(|_| is_its_own)?))
            });
            if let Some((ask, question)) = first {
                self.line.clear();
                question.put_first(ask, &mut self.line);
                running.write(&self.line);
            }
            asked.running = Some(running);
        }
        for (number, asked) in self.asked.iter_mut().enumerate() {
            if let Some(running) = &mut asked.running {
                first_answer(running, number, plan, stop)?;
            }
        }
        Ok(outputs)
    }

    /// Writes the prepared question to the program of a step. Returns whether it could be asked.
    pub(super) fn ask(&mut self, program: u16, id: u64, session: u32) -> bool {
        let asked = &mut self.asked[usize::from(program)];
        let is_full = asked.open.len() >= OPEN_MAX;
        let Some(running) = asked.running.as_mut().filter(|_| !is_full) else {
            return false;
        };
        if !running.write(&self.line) {
            let because = "leaves its questions unread";
            let failed = format!("{} {because}", running.name());
            self.measured.failed.get_or_insert(failed);
            return false;
        }
        asked.open.push_back((id, Some(session)));
        true
    }

    /// Records why a program gave no value.
    pub(super) fn note(&mut self, program: u16, why: &str) {
        let name = self.asked[usize::from(program)].running.as_ref();
        let name = name.map_or("", ChildProgram::name);
        let failed = format!("{name} {why}");
        self.measured.failed.get_or_insert(failed);
    }

    /// Reads the output of a watched program. Each answer goes to `heard`. Returns whether to go on
    /// watching it.
    pub(super) fn hear(&mut self, source: u32, heard: &mut Vec<ProgramReply>) -> bool {
        let Some(asked) = self.asked.get_mut(source as usize / 2) else {
            return false;
        };
        let WorkerProgram { running, open } = asked;
        let Some(program) = running else {
            return false;
        };
        if source % 2 == 1 {
            return program.listen();
        }
        let mut unknown = None;
        let is_open = program.read(&mut |line| {
            let answer = match line {
                Some(line) => ProgramAnswer::read(line),
                None => {
                    let most = ProgramAnswer::BYTES_MAX >> 10;
                    Err(format!("wrote a line of more than {most} KiB"))
                }
            };
            // What cannot be read is the answer to the oldest question.
            let id = answer.as_ref().ok().and_then(|answer| answer.id);
            match whose(open, id) {
                Some((session, id)) => heard.push((session, id, answer)),
                None => unknown = Some(id),
            }
        });
        program.write_rest();
        if let Some(id) = unknown {
            let name = program.name();
            let which = id.map_or(String::new(), |id| format!(" number {id}"));
            let failed = format!("{name} answered a question{which} that was not open");
            self.measured.failed.get_or_insert(failed);
        }
        if !is_open {
            let why = program.ended();
            self.measured.failed = Some(format!("{} {why}", program.name()));
            self.measured.has_ended = true;
            *running = None;
            let open = std::mem::take(open).into_iter();
            heard.extend(open.filter_map(|(id, session)| Some((session?, id, Err(why.clone())))));
        }
        is_open
    }

    /// Writes again what programs had no room for.
    pub(super) fn write_rest(&mut self) {
        let running = self.asked.iter_mut().filter_map(|a| a.running.as_mut());
        running.for_each(ChildProgram::write_rest);
    }

    /// Time of the next action of this module; in the past if overdue.
    pub(super) fn next_deadline(&self, now: Nanos) -> Nanos {
        let is_behind =
            |asked: &WorkerProgram| asked.running.as_ref().is_some_and(ChildProgram::is_behind);
        let retry = self.asked.iter().any(is_behind).then_some(now + RETRY);
        let limit = self.limits.peek().map(|Reverse((at, ..))| *at);
        retry.into_iter().chain(limit).min().unwrap_or(Nanos::MAX)
    }
}

/// The session and number of the answered question: the oldest if the answer has no number.
fn whose(open: &mut VecDeque<(u64, Option<u32>)>, id: Option<u64>) -> Option<(u32, u64)> {
    let at = match id {
        Some(id) => open.binary_search_by_key(&id, |(id, _)| *id).ok()?,
        None => 0,
    };
    let (id, session) = open.get_mut(at)?;
    let (id, session) = (*id, session.take()?);
    while let Some((_, None)) = open.front() {
        open.pop_front();
    }
    Some((session, id))
}

/// Waits for the answer to the first question, which all programs get before the load.
fn first_answer(
    running: &mut ChildProgram,
    number: usize,
    plan: &SessionPlan,
    stop: &AtomicBool,
) -> Result<(), RunError> {
    let wrong = |running: &ChildProgram, what: &str| {
        let (line, _) = plan.programs[number].at;
        let name = running.name();
        RunError::NotPermitted(format!("exec {name} (line {line}) {what}"))
    };
    let asks = plan.requests.iter().filter_map(|step| step.ask.as_ref());
    let mut asks = asks.filter(|ask| usize::from(ask.program) == number);
    let Some(ask) = asks.next() else {
        return Ok(());
    };
    let begin = Instant::now();
    let mut first = None;
    while !stop.load(Ordering::Relaxed) {
        running.write_rest();
        let is_open = running.read(&mut |line| {
            let answer = line.ok_or_else(|| "wrote a line that is too long".to_owned());
            first.get_or_insert_with(|| answer.and_then(ProgramAnswer::read));
        });
        running.listen();
        let values = match first {
            Some(Ok(answer)) if answer.is_error() => return Ok(()),
            Some(Ok(answer)) => answer.values(ask).map(drop),
            Some(Err(why)) => Err(why),
            None if !is_open => {
                let why = format!("{} before the load", running.ended());
                return Err(wrong(running, &why));
            }
            None if begin.elapsed() >= FIRST_ANSWER => {
                let limit = FIRST_ANSWER.as_secs();
                let why = format!("did not answer the first question within {limit} s");
                Err(why)
            }
            None => {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
        };
        return values.map_err(|why| {
            let why = format!("{why}{}", running.last_words());
            wrong(running, &why)
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_find_their_questions_in_any_order() {
        let mut open: VecDeque<_> = (3..8).map(|id| (id, Some(id as u32 * 10))).collect();
        assert_eq!(whose(&mut open, Some(5)), Some((50, 5)));
        assert_eq!(whose(&mut open, Some(5)), None, "answered already");
        assert_eq!(whose(&mut open, Some(9)), None, "never asked");
        assert_eq!(whose(&mut open, None), Some((30, 3)), "the oldest");
        assert_eq!(whose(&mut open, None), Some((40, 4)));
        assert_eq!(open.front(), Some(&(6, Some(60))), "5 went with 4");
        assert_eq!(whose(&mut open, Some(7)), Some((70, 7)));
        assert_eq!(whose(&mut open, Some(6)), Some((60, 6)));
        assert!(open.is_empty());
        assert_eq!(whose(&mut open, None), None);
    }
}
