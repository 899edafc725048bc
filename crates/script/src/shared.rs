//! State of a user that its stack and its conductor share.

use crate::failure::Failure;
use crate::message::{Operation, RawResponse, ScriptRequest, Statuses, UrlOrigin};
use crate::script::{NAMES_MAX, Script};
use corosensei::Yielder;
use knee_load::rng::Rng;
use knee_load::session::{Jar, Origin};
use knee_load::time::Nanos;
use rquickjs::{Ctx, Error, Exception, Value, qjs};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

/// The clock of the run.
pub type Clock = Rc<dyn Fn() -> Nanos>;

/// Reads a file by its path from the script's folder.
pub type ReadFile = Rc<dyn Fn(&str) -> Result<Vec<u8>, String>>;

/// Time that a user computes before others have their turn.
const TURN: Nanos = Nanos::from_micros(200);

/// Most records that an iteration leaves behind until they are taken.
const RECORDS_MAX: usize = 100_000;

/// Most promises that are kept as rejected.
const REJECTED_MAX: usize = 100;

/// Bytes of console output that are kept of a user.
const LOG_BYTES_MAX: usize = 64 << 10;

/// What a new user needs.
#[derive(Clone)]
pub struct UserSetup {
    /// The script.
    pub script: Arc<Script>,
    /// Its number among all users of the run, from 1 on (`__VU`); 0 while a script is read.
    pub number: u64,
    /// Randomness of its own.
    pub rng: Rng,
    /// The clock of the run.
    pub clock: Clock,
    /// Processor time of the calling thread.
    pub processor: Clock,
    /// Origins of the target's servers. Where it is empty, every request goes out.
    pub origins: Rc<[Origin]>,
    /// Most memory, in bytes.
    pub memory_max: u64,
    /// Reads files that the script asks for, while it is read; `None`: those of the script's plan.
    pub read: Option<ReadFile>,
}

/// An iteration that begins.
#[derive(Clone, Debug, Default)]
pub struct Iteration {
    /// The exported function.
    pub function: String,
    /// The number of its scenario.
    pub kind: usize,
    /// Name and executor of its scenario.
    pub scenario: (String, String),
    /// Its number among those of the user, from 0 on (`__ITER`).
    pub number: u64,
    /// Its numbers among the iterations of its scenario, from 0 on: in this process, and in the run.
    pub in_scenario: [u64; 2],
    /// What `setup` returned, as JSON; empty for nothing.
    pub data: Arc<str>,
    /// Cookies of the iteration before are kept.
    pub keeps_cookies: bool,
    /// What the function returns is asked for.
    pub wants_result: bool,
    /// A time of day at the origin of the clock, in nanoseconds since 1970.
    pub realtime_origin_ns: u64,
}

/// What a user does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It waits for responses to its requests, and until this time at the most.
    Wait(Nanos),
    /// It has computed for a while: others have their turn.
    Turn,
    /// Its iteration is over: what the function returned, as JSON.
    Over(Result<Option<String>, Failure>),
}

/// Something that a script recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record {
    /// A check, by the number of its name.
    Check(u32, bool),
    /// The time that a group took, by the number of its path.
    Group(u32, Nanos),
    /// A value of a metric, by its number.
    Metric(u32, f64),
    /// A redirection was not followed: no request goes where it leads.
    LedAway,
}

/// Bytes that a user holds outside of its runtime, until this is dropped.
pub(crate) struct Held {
    shared: Rc<Shared>,
    bytes: usize,
}

impl Held {
    /// # Errors
    /// The user holds more than it may.
    pub(crate) fn new(ctx: &Ctx<'_>, shared: &Rc<Shared>, bytes: usize) -> Result<Held, Error> {
        let all = shared.held.get() + bytes;
        if all as u64 > shared.setup.memory_max {
            return Err(Exception::throw_message(ctx, "out of memory"));
        }
        shared.held.set(all);
        Ok(Held { shared: Rc::clone(shared), bytes })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.held.set(self.shared.held.get() - self.bytes);
    }
}

/// The state.
pub(crate) struct Shared {
    pub(crate) setup: UserSetup,
    pub(crate) yielder: Cell<*const Yielder<(), ()>>,
    pub(crate) rng: RefCell<Rng>,
    /// What it does next, once it is suspended.
    pub(crate) next: RefCell<Next>,
    /// The iteration to begin.
    pub(crate) begins: RefCell<Option<Iteration>>,
    pub(crate) iteration: RefCell<Rc<Iteration>>,
    /// An iteration is under way.
    pub(crate) is_running: Cell<bool>,
    /// It ends without its script catching that.
    pub(crate) stops: Cell<bool>,
    /// Time by the user when it was resumed, and by the clock.
    resumed: Cell<(Nanos, Nanos)>,
    /// Processor time of the thread when the engine of JavaScript first said that the user computes,
    /// after it was resumed; `None` before. Who let others go on while it computed has that from its
    /// resumption on. Most users never come to that: to read it is a call of the system.
    processor_before: Cell<Option<Nanos>>,
    /// The user's time at which it was suspended while it computed.
    pub(crate) paused: Cell<Option<Nanos>>,
    /// Processor time since its last request, up to the last suspension.
    computed: Cell<Nanos>,
    /// It computed for longer than it may.
    pub(crate) is_out_of_time: Cell<bool>,
    /// The script ended the test, because of this.
    pub(crate) aborts: RefCell<Option<String>>,
    /// The script marked the test as failed, because of this.
    pub(crate) marks: RefCell<Option<String>>,
    /// Requests to be taken.
    pub(crate) out: RefCell<VecDeque<(u32, ScriptRequest)>>,
    pub(crate) operations: RefCell<Vec<(u32, Operation)>>,
    pub(crate) next_operation: Cell<u32>,
    /// Responses for the script.
    pub(crate) arrived: RefCell<Vec<(u32, RawResponse)>>,
    /// The user's jar, then those that the script made.
    pub(crate) jars: RefCell<Vec<Jar>>,
    /// Origins that requests went to, where the setup has none.
    pub(crate) origins: RefCell<Vec<Origin>>,
    /// Origins of URLs by their texts, the last new one first.
    pub(crate) url_origins: RefCell<Vec<(String, Rc<UrlOrigin>)>>,
    pub(crate) records: RefCell<Vec<Record>>,
    /// Numbers of names, as known to this user.
    names: RefCell<HashMap<String, u32>>,
    /// Rows of requests, as known to this user.
    rows: RefCell<HashMap<String, u32>>,
    /// Statuses that are no failures, both ends included; `None`: those below 400.
    pub(crate) expects: RefCell<Option<Statuses>>,
    /// Promises that were rejected and that nothing handles: where they are, and why.
    pub(crate) rejected: RefCell<Vec<(usize, Failure)>>,
    /// Bytes of the responses and pages that the script has.
    held: Cell<usize>,
    /// The groups that the user is in.
    pub(crate) groups: RefCell<Vec<(String, Nanos)>>,
    pub(crate) log: RefCell<String>,
    /// Files read so far.
    pub(crate) files: RefCell<BTreeMap<String, Vec<u8>>>,
    /// The last import: who asked for it, and its name there.
    pub(crate) imported: RefCell<(String, String)>,
    /// Why a module cannot be used: what it is, who asks for it, and the reason.
    pub(crate) refused: RefCell<Option<(String, String, String)>>,
}

impl Shared {
    pub(crate) fn new(setup: UserSetup) -> Shared {
        Shared {
            yielder: Cell::new(std::ptr::null()),
            rng: RefCell::new(setup.rng.clone()),
            next: RefCell::new(Next::Turn),
            begins: RefCell::default(),
            iteration: RefCell::default(),
            is_running: Cell::new(false),
            stops: Cell::new(false),
            resumed: Cell::new((Nanos::ZERO, (setup.clock)())),
            processor_before: Cell::new(None),
            paused: Cell::new(None),
            computed: Cell::new(Nanos::ZERO),
            is_out_of_time: Cell::new(false),
            aborts: RefCell::default(),
            marks: RefCell::default(),
            out: RefCell::default(),
            operations: RefCell::default(),
            next_operation: Cell::new(0),
            arrived: RefCell::default(),
            jars: RefCell::new(vec![Jar::default()]),
            origins: RefCell::new(setup.origins.to_vec()),
            url_origins: RefCell::default(),
            records: RefCell::default(),
            names: RefCell::default(),
            rows: RefCell::default(),
            expects: RefCell::default(),
            rejected: RefCell::default(),
            held: Cell::new(0),
            groups: RefCell::default(),
            log: RefCell::default(),
            files: RefCell::default(),
            imported: RefCell::default(),
            refused: RefCell::default(),
            setup,
        }
    }

    /// The user's time: that for which it was resumed, and what it has computed since.
    pub(crate) fn now(&self) -> Nanos {
        let (due, at) = self.resumed.get();
        due + ((self.setup.clock)() - at)
    }

    /// The time of day, in nanoseconds since 1970.
    pub(crate) fn realtime_ns(&self) -> u64 {
        self.iteration.borrow().realtime_origin_ns + (self.setup.clock)().0
    }

    /// Processor time since the last request.
    fn computed(&self) -> Nanos {
        let now = (self.setup.processor)();
        let before = self.processor_before.get().unwrap_or(now);
        self.processor_before.set(Some(before));
        self.computed.get() + (now - before)
    }

    /// Begins to count processor time anew.
    pub(crate) fn reset_computed(&self) {
        self.computed.set(Nanos::ZERO);
        self.processor_before.set(None);
    }

    /// The user is resumed for what was due at a time.
    pub(crate) fn resume_at(&self, due: Nanos) {
        self.resumed.set((due, (self.setup.clock)()));
        self.processor_before.set(self.paused.get().map(|_| (self.setup.processor)()));
    }

    /// Suspends the user's stack.
    pub(crate) fn suspend(&self, next: Next) {
        if self.processor_before.get().is_some() {
            self.computed.set(self.computed());
        }
        self.paused.set((next == Next::Turn).then(|| self.now()));
        *self.next.borrow_mut() = next;
        // SAFETY: the pointer is set by the user's stack as its first act, and only code on that
        // stack comes here. The yielder lives at the bottom of the stack.
        unsafe { &*self.yielder.get() }.suspend(());
    }

    /// Suspends the user until this time, or until something arrives. Fails for good where the user
    /// ends meanwhile.
    pub(crate) fn wait(&self, ctx: &Ctx<'_>, until: Nanos) -> Result<(), Error> {
        if !self.stops.get() {
            self.suspend(Next::Wait(until));
        }
        if self.stops.get() { Err(uncatchable(ctx, "the load has ended")) } else { Ok(()) }
    }

    /// Called by the engine of JavaScript again and again while it computes. Returns whether to end
    /// the iteration.
    pub(crate) fn on_computing(&self) -> bool {
        if self.stops.get() || self.is_out_of_time.get() {
            return true;
        }
        if self.computed() > self.setup.script.plan().time_max {
            self.is_out_of_time.set(true);
            return true;
        }
        if self.is_running.get() && (self.setup.clock)() - self.resumed.get().1 > TURN {
            self.suspend(Next::Turn);
        }
        self.stops.get()
    }

    /// A promise was rejected, or what handles that came later.
    pub(crate) fn on_rejected(&self, promise: &Value<'_>, reason: &Value<'_>, is_handled: bool) {
        // SAFETY: promises are objects, whose place tells them apart.
        let place = unsafe { qjs::JS_VALUE_GET_PTR(promise.as_raw()) } as usize;
        let mut rejected = self.rejected.borrow_mut();
        if is_handled {
            rejected.retain(|(other, _)| *other != place);
        } else if rejected.len() < REJECTED_MAX {
            rejected.push((place, Failure::of_value(reason)));
        }
    }

    pub(crate) fn record(&self, record: Record) {
        let mut records = self.records.borrow_mut();
        if records.len() < RECORDS_MAX {
            records.push(record);
        }
    }

    /// The tags of what happens now, beside its own.
    pub(crate) fn tags(&self, own: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut tags = self.setup.script.settings().tags.clone();
        let iteration = self.iteration.borrow();
        let scenario = &iteration.scenario.0;
        tags.extend(
            self.setup.script.settings().scenarios.get(scenario).cloned().unwrap_or_default(),
        );
        tags.insert("group".to_owned(), self.group_path());
        tags.insert("scenario".to_owned(), scenario.clone());
        tags.extend(own);
        tags
    }

    /// Records values of metrics with tags; `value` has that of a metric.
    pub(crate) fn record_tagged(
        &self,
        tags: &BTreeMap<String, String>,
        value: impl Fn(&str) -> Option<f64>,
    ) {
        for (number, metric) in self.setup.script.tagged(tags) {
            if let Some(value) = value(metric) {
                self.record(Record::Metric(number, value));
            }
        }
    }

    /// Records values of metrics of k6, in the group of this path, where a threshold asks for them.
    pub(crate) fn record_own(&self, group: Option<String>, values: &[(&str, f64)]) {
        if self.setup.script.has_tagged() {
            let group = group.map(|path| ("group".to_owned(), path));
            let tags = self.tags(group.into_iter().collect());
            let value = |metric: &str| values.iter().find(|(of, _)| *of == metric);
            self.record_tagged(&tags, |metric| value(metric).map(|(_, value)| *value));
        }
    }

    /// The number of a name of a check or a group.
    pub(crate) fn name(&self, name: &str) -> u32 {
        if let Some(number) = self.names.borrow().get(name) {
            return *number;
        }
        let number = self.setup.script.name(name);
        if number + 1 < NAMES_MAX as u32 {
            self.names.borrow_mut().insert(name.to_owned(), number);
        }
        number
    }

    /// The row of a request's name.
    pub(crate) fn row(&self, name: &str) -> u32 {
        if let Some(row) = self.rows.borrow().get(name) {
            return *row;
        }
        let row = self.setup.script.row(name);
        if row + 1 < knee_load::session::SCRIPT_ROWS as u32 {
            self.rows.borrow_mut().insert(name.to_owned(), row);
        }
        row
    }

    /// The path of the groups that the user is in; each name follows `::`.
    pub(crate) fn group_path(&self) -> String {
        self.groups.borrow().iter().map(|(name, _)| format!("::{name}")).collect()
    }

    /// Warns of something on the console, once in a process.
    pub(crate) fn warn(&self, line: &str) {
        if self.setup.script.is_news(line) {
            self.log("warn", line);
        }
    }

    pub(crate) fn log(&self, level: &str, text: &str) {
        let mut log = self.log.borrow_mut();
        if log.len() + text.len() < LOG_BYTES_MAX {
            log.push_str(level);
            log.push_str(": ");
            log.push_str(text);
            log.push('\n');
        } else {
            self.setup.script.leave_out_line();
        }
    }

    /// All files that were read.
    pub(crate) fn all_files(&self) -> BTreeMap<String, Vec<u8>> {
        match &self.setup.read {
            None => self.setup.script.plan().files.clone(),
            Some(_) => self.files.borrow().clone(),
        }
    }

    /// A file below the script's folder.
    pub(crate) fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        match &self.setup.read {
            None => {
                let files = &self.setup.script.plan().files;
                let missing = || format!("{path} was not read before the load: open it there");
                files.get(path).cloned().ok_or_else(missing)
            }
            Some(read) => {
                if let Some(file) = self.files.borrow().get(path) {
                    return Ok(file.clone());
                }
                let file = read(path)?;
                self.files.borrow_mut().insert(path.to_owned(), file.clone());
                Ok(file)
            }
        }
    }

    /// The number of the server of an origin.
    pub(crate) fn server(&self, origin: &Origin) -> Option<u16> {
        let mut origins = self.origins.borrow_mut();
        let known = origins.iter().position(|known| known == origin);
        if known.is_none() && self.setup.origins.is_empty() {
            origins.push(origin.clone());
            return Some(origins.len() as u16 - 1);
        }
        known.map(|at| at as u16)
    }
}

/// Throws an error that no script catches.
pub(crate) fn uncatchable(ctx: &Ctx<'_>, message: &str) -> Error {
    let Ok(exception) = rquickjs::Exception::from_message(ctx.clone(), message) else {
        return Error::Exception;
    };
    let value: Value<'_> = exception.into_object().into_value();
    // SAFETY: both pointers are of this context, and the value is an error object.
    unsafe { qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), value.as_raw()) };
    ctx.throw(value)
}
