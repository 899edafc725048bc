//! One user: a runtime of JavaScript on a stack of its own.

use crate::built_in::CORE;
use crate::failure::{Failure, FailureKind};
use crate::message::{ScriptRequest, ScriptResponse};
use crate::modules;
use crate::natives;
use crate::shared::{Iteration, Next, Record, Shared, UserSetup, uncatchable};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use knee_load::time::Nanos;
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Error, Function, Module, Object, Promise, Runtime, Value, qjs};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

/// Size of a user's stack. Pages that are never used take no memory.
const STACK_BYTES: usize = 2 << 20;

/// What JavaScript may use of the stack: over 2,000 calls of an ordinary function, as in k6. The rest
/// is for what it calls.
const SCRIPT_STACK_BYTES: usize = STACK_BYTES - (256 << 10);

/// Bytes allocated before the first collection of cycles.
const GC_BYTES: usize = 256 << 10;

/// Most times that a stack is resumed until it has ended.
const ENDING_RESUMES_MAX: usize = 1_000;

/// A user, who walks through iterations one after the other.
pub struct User {
    stack: Option<Coroutine<(), (), ()>>,
    shared: Rc<Shared>,
}

impl User {
    /// Creates a user and runs the script's init code.
    ///
    /// # Errors
    /// The script cannot run, and why.
    pub fn new(setup: UserSetup) -> Result<User, Failure> {
        let shared = Rc::new(Shared::new(setup));
        let no_memory = |e: std::io::Error| Failure {
            kind: FailureKind::Memory,
            ..Failure::new(format!("no memory for the stack of a user: {e}"))
        };
        let stack = DefaultStack::new(STACK_BYTES).map_err(no_memory)?;
        let own = Rc::clone(&shared);
        let mut user = User {
            stack: Some(Coroutine::with_stack(stack, move |yielder, ()| {
                own.yielder.set(yielder);
                live(&own);
            })),
            shared,
        };
        user.resume(Nanos::ZERO);
        let ended = user.shared.next.replace(Next::Turn);
        match ended {
            Next::Over(Err(failure)) => Err(failure),
            _ => Ok(user),
        }
    }

    /// Begins an iteration at its intended time. Requests that go out are taken by
    /// [`User::take_request`].
    pub fn begin(&mut self, iteration: Iteration, due: Nanos) -> Next {
        *self.shared.begins.borrow_mut() = Some(iteration);
        self.advance(due)
    }

    /// The next request that goes out, with the number of its operation.
    pub fn take_request(&mut self) -> Option<(u32, ScriptRequest)> {
        self.shared.out.borrow_mut().pop_front()
    }

    /// Takes the response to a request. Returns whether the user can go on: a redirection that is
    /// followed is another request of the same operation.
    pub fn respond(&mut self, operation: u32, response: ScriptResponse) -> bool {
        crate::request::respond(&self.shared, operation, response)
    }

    /// Goes on at `due`: responses have come, or the user waited until then.
    pub fn advance(&mut self, due: Nanos) -> Next {
        if self.stack.is_none() {
            return Next::Over(Err(Failure::new("the user has ended")));
        }
        self.resume(due);
        self.shared.next.replace(Next::Turn)
    }

    /// The user's time, where its script is now: that of the next request.
    pub fn now(&self) -> Nanos {
        self.shared.now()
    }

    /// What was recorded since the last call.
    pub fn take_records(&mut self, mut each: impl FnMut(Record)) {
        self.shared.records.borrow_mut().drain(..).for_each(&mut each);
    }

    /// What the script wrote to the console since the last call, a line each.
    pub fn take_log(&mut self) -> String {
        std::mem::take(&mut *self.shared.log.borrow_mut())
    }

    /// Why the script marked the test as failed, if it did so since the last call.
    pub fn take_mark(&mut self) -> Option<String> {
        self.shared.marks.borrow_mut().take()
    }

    /// The user's time at which it let others go on while it computed; `None` where it waits.
    pub fn paused_at(&self) -> Option<Nanos> {
        self.shared.paused.get()
    }

    pub(crate) fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// Ends the iteration under way. The script does not catch that.
    pub fn stop(&mut self) {
        self.shared.stops.set(true);
        for _ in 0..ENDING_RESUMES_MAX {
            if self.stack.is_none() {
                return;
            }
            self.resume(Nanos::ZERO);
        }
    }

    fn resume(&mut self, due: Nanos) {
        let Some(stack) = &mut self.stack else { return };
        self.shared.resume_at(due);
        if let CoroutineResult::Return(()) = stack.resume(()) {
            self.stack = None;
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.stop();
        // To unwind through the C code on a suspended stack would abort the process.
        if let Some(stack) = self.stack.take() {
            std::mem::forget(stack);
        }
    }
}

/// The life of a user, on its stack.
fn live(shared: &Rc<Shared>) {
    let ended = (|| {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(shared.setup.memory_max as usize);
        runtime.set_max_stack_size(SCRIPT_STACK_BYTES);
        runtime.set_gc_threshold(GC_BYTES);
        let own = Rc::clone(shared);
        runtime.set_interrupt_handler(Some(Box::new(move || own.on_computing())));
        let own = Rc::clone(shared);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |_, promise, reason, is_handled| own.on_rejected(&promise, &reason, is_handled),
        )));
        modules::set_loader(&runtime, shared);
        let context = Context::full(&runtime)?;
        context.with(|ctx| {
            let ended = follow(&ctx, shared);
            ended.map_err(|error| {
                over(shared, Err(failure_of(&ctx, shared, error)));
                Error::Exception
            })
        })
    })();
    if ended.is_err() && !matches!(*shared.next.borrow(), Next::Over(Err(_))) {
        over(shared, Err(Failure::new("no memory for a user: raise --script-memory")));
    }
}

fn over(shared: &Shared, ended: Result<Option<String>, Failure>) {
    *shared.next.borrow_mut() = Next::Over(ended);
}

/// Runs the init code, then iterations.
fn follow<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>) -> Result<(), Error> {
    natives::install(ctx, shared)?;
    // What every script has is there before its first file is looked at.
    let first = Module::declare(ctx.clone(), modules::FIRST, format!("import '{CORE}';"));
    first?.eval()?.1.finish::<()>()?;
    let main = serde_json::Value::from(&*shared.setup.script.plan().main);
    let all =
        format!("export {{ default as settle }} from '{CORE}'; export * as script from {main};");
    let (all, promise) = Module::declare(ctx.clone(), modules::ALL, all)?.eval()?;
    promise.finish::<()>()?;
    let all = all.namespace()?;
    let (settle, exports): (Function<'js>, Object<'js>) = (all.get("settle")?, all.get("script")?);
    if shared.setup.number == 0 {
        let function = describe(ctx, &exports)?;
        *shared.iteration.borrow_mut() = Rc::new(Iteration { function, ..Iteration::default() });
    }
    shared.setup.script.counts[0].fetch_add(1, Relaxed);
    over(shared, Ok(None));
    let mut data: (std::sync::Arc<str>, Value<'js>) =
        ("".into(), Value::new_undefined(ctx.clone()));
    loop {
        shared.is_running.set(false);
        let next = shared.next.replace(Next::Turn);
        shared.suspend(next);
        if shared.stops.get() {
            return Ok(());
        }
        let Some(iteration) = shared.begins.borrow_mut().take().map(Rc::new) else {
            over(shared, Ok(None));
            continue;
        };
        begin(ctx, shared, &iteration)?;
        // A user gets the data of `setup` once, as in k6.
        if !std::sync::Arc::ptr_eq(&data.0, &iteration.data) {
            let value = match &*iteration.data {
                "" => Value::new_undefined(ctx.clone()),
                json => ctx.json_parse(json)?,
            };
            data = (iteration.data.clone(), value);
        }
        let began = shared.now();
        let counts = &shared.setup.script.counts;
        counts[1].fetch_add(1, Relaxed);
        let returned = exports.get::<_, Function<'js>>(&*iteration.function).and_then(|function| {
            let argument = data.1.clone();
            let returned = function.call::<_, Value<'js>>((argument,))?;
            let returned = finish(ctx, shared, &settle, returned)?;
            let least = shared.setup.script.settings().min_iteration_duration;
            if let Some(least) = least.filter(|_| !iteration.wants_result) {
                while shared.now() < began + least {
                    shared.wait(ctx, began + least)?;
                }
            }
            Ok(returned)
        });
        let ended = returned.and_then(|value| {
            if !iteration.wants_result || value.is_undefined() {
                return Ok(None);
            }
            let kind = value.type_name();
            let Some(json) = ctx.json_stringify(value)? else {
                let line = format!("the function returns a value of type {kind}, which is no JSON");
                return Err(rquickjs::Exception::throw_message(ctx, &line));
            };
            json.to_string().map(Some)
        });
        let ended = ended.map_err(|error| failure_of(ctx, shared, error));
        let ms = (shared.now() - began).0 as f64 / 1e6;
        shared.record_own(None, &[("iterations", 1.0), ("iteration_duration", ms)]);
        counts[1].fetch_sub(1, Relaxed);
        counts[2 + usize::from(ended.is_err())].fetch_add(1, Relaxed);
        shared.rejected.borrow_mut().clear();
        shared.groups.borrow_mut().clear();
        shared.out.borrow_mut().clear();
        shared.operations.borrow_mut().clear();
        shared.arrived.borrow_mut().clear();
        over(shared, ended);
    }
}

/// What a script exports: its options, and its functions, as JSON. Nothing of JavaScript helps, as
/// a script may have changed all that is there.
fn describe<'js>(ctx: &Ctx<'js>, exports: &Object<'js>) -> Result<String, Error> {
    let options: Value<'js> = exports.get("options")?;
    for option in options.as_object().into_iter().flat_map(Object::props::<String, Value<'js>>) {
        let (name, value) = option?;
        if value.as_number().is_some_and(f64::is_nan) {
            let line = format!("options: invalid {name}: it is no number");
            return Err(rquickjs::Exception::throw_message(ctx, &line));
        }
    }
    let json = ctx.json_stringify(options)?.map(|json| json.to_string()).transpose()?;
    let options: serde_json::Value =
        json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
    let mut functions = Vec::new();
    for export in exports.props::<String, Value<'js>>() {
        let (name, value) = export?;
        if value.is_function() {
            functions.push(name);
        }
    }
    let options = if options.is_null() { serde_json::json!({}) } else { options };
    Ok(serde_json::json!({ "options": options, "functions": functions }).to_string())
}

fn begin(ctx: &Ctx<'_>, shared: &Rc<Shared>, iteration: &Rc<Iteration>) -> Result<(), Error> {
    let globals = ctx.globals();
    globals.set("__ITER", iteration.number)?;
    let plan = shared.setup.script.plan();
    if plan.envs.iter().any(|env| !env.is_empty()) {
        let env = Object::new(ctx.clone())?;
        let own = plan.envs.get(iteration.kind).into_iter().flatten();
        for (name, value) in plan.env.iter().chain(own) {
            env.set(&**name, &**value)?;
        }
        globals.set("__ENV", env)?;
    }
    if !iteration.keeps_cookies
        && let Some(jar) = shared.jars.borrow_mut().first_mut()
    {
        jar.clear();
    }
    *shared.iteration.borrow_mut() = Rc::clone(iteration);
    shared.is_running.set(true);
    shared.is_out_of_time.set(false);
    shared.reset_computed();
    Ok(())
}

/// Runs a job that waits. Returns whether there was one.
fn run_job(ctx: &Ctx<'_>) -> Result<bool, Error> {
    let mut of = std::ptr::null_mut();
    // SAFETY: the runtime is that of this context, the only one there.
    let ran = unsafe {
        qjs::JS_ExecutePendingJob(qjs::JS_GetRuntime(ctx.as_raw().as_ptr()), &raw mut of)
    };
    if ran < 0 { Err(Error::Exception) } else { Ok(ran > 0) }
}

/// What the engine says where a user has used its memory.
const OUT_OF_MEMORY: &str = "out of memory";

/// Waits until what a function began has ended: its promise, timers and requests.
fn finish<'js>(
    ctx: &Ctx<'js>,
    shared: &Rc<Shared>,
    settle: &Function<'js>,
    returned: Value<'js>,
) -> Result<Value<'js>, Error> {
    let promise = Promise::from_value(returned.clone()).ok();
    loop {
        while run_job(ctx)? {
            // Who is ended in a job has that in a promise, which nobody may look at.
            if shared.is_out_of_time.get() || shared.stops.get() {
                return Err(uncatchable(ctx, "the iteration was ended"));
            }
        }
        // The engine goes on where there is no memory for a job, and keeps that as an exception, as
        // it does with what a native function has tried in vain.
        // SAFETY: the context is a living one.
        if unsafe { qjs::JS_HasException(ctx.as_raw().as_ptr()) } {
            let kept = ctx.catch();
            // Null, where no memory was left for an error.
            if kept.is_null() || Failure::of_value(&kept).message.contains(OUT_OF_MEMORY) {
                return Err(ctx.throw(kept));
            }
        }
        if let Some(promise) = &promise
            && promise.state() == PromiseState::Rejected
        {
            return promise.result::<Value<'js>>().unwrap_or(Ok(returned));
        }
        // Settles what has arrived and runs timers that are due; when the next one is.
        let next: f64 = settle.call(())?;
        if next == 0.0 {
            continue;
        }
        let waits = !shared.operations.borrow().is_empty();
        if next < 0.0 && !waits {
            break;
        }
        let until = if next < 0.0 { Nanos::MAX } else { Nanos(next as u64) };
        shared.wait(ctx, until)?;
    }
    // What was rejected says why, see `failure_of`.
    if !shared.rejected.borrow().is_empty() {
        return Err(Error::Unknown);
    }
    match &promise {
        None => Ok(returned),
        Some(promise) => promise.result::<Value<'js>>().unwrap_or_else(|| {
            let line = "the function waits for a promise that nothing settles";
            Err(rquickjs::Exception::throw_message(ctx, line))
        }),
    }
}

fn failure_of(ctx: &Ctx<'_>, shared: &Shared, error: Error) -> Failure {
    if matches!(error, Error::Unknown)
        && let Some((_, failure)) = shared.rejected.borrow_mut().pop()
    {
        let message = format!("unhandled rejection of a promise: {}", failure.message);
        return Failure { message, ..failure };
    }
    let failure = Failure::of(ctx, error);
    if let Some((name, from, why)) = shared.refused.borrow_mut().take() {
        let source = shared.file(&from).unwrap_or_default();
        let at = modules::position_of(&source, &name).map(|(line, column)| (from, line, column));
        return Failure { at, ..Failure::new(why) };
    }
    if failure.at.is_none()
        && let Some((_, rest)) = failure.message.split_once("in module '")
        && let Some((name, _)) = rest.split_once('\'')
    {
        // An export that is not there: the first import of its module.
        let found = shared.all_files().into_iter().find_map(|(file, source)| {
            let (line, column) = modules::import_of(&source, name)?;
            Some((file, line, column))
        });
        return Failure { at: found, ..failure };
    }
    if let Some(reason) = shared.aborts.borrow_mut().take() {
        return Failure { kind: FailureKind::Abort, at: failure.at, ..Failure::new(reason) };
    }
    if shared.stops.get() {
        return Failure { kind: FailureKind::Stopped, ..failure };
    }
    if shared.is_out_of_time.get() {
        let limit = shared.setup.script.plan().time_max;
        let line = format!("computed for over {limit} between two requests (--script-time)");
        return Failure { kind: FailureKind::Time, ..Failure { message: line, ..failure } };
    }
    if failure.message.contains(OUT_OF_MEMORY) {
        let most = shared.setup.memory_max;
        let is_part = most < shared.setup.script.plan().memory_max;
        let whose = if is_part { "its part of half of what there is" } else { "--script-memory" };
        let line = format!("used more than {} KiB of memory ({whose})", most >> 10);
        return Failure { kind: FailureKind::Memory, ..Failure { message: line, ..failure } };
    }
    failure
}

#[cfg(test)]
pub(crate) mod tests;
