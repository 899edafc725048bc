//! Calls: functions of the script are followed, those of k6 become steps.

use super::interpreter::{K6Flow, K6Interpreter, K6Step};
use super::value::{FunctionCode, JsFunction, JsValue, K6Test};
use oxc_ast::ast::*;
use std::rc::Rc;

/// What a call gets.
pub(super) type Arguments<'a> = Vec<JsValue<'a>>;

/// The argument at this place.
pub(super) fn argument<'a>(arguments: &[JsValue<'a>], at: usize) -> JsValue<'a> {
    arguments.get(at).cloned().unwrap_or(JsValue::Undefined)
}

impl<'a> K6Interpreter<'a, '_> {
    pub(super) fn call_expression(
        &mut self,
        of: &'a CallExpression<'a>,
        scope: usize,
    ) -> JsValue<'a> {
        let at = of.span.start;
        if let Some(member) = of.callee.as_member_expression() {
            if let Expression::Super(_) = member.object() {
                return self.call_of_parent(member.static_property_name(), &of.arguments, scope);
            }
            let (object, name) = match member {
                MemberExpression::ComputedMemberExpression(member) => {
                    let object = self.evaluate(&member.object, scope);
                    let key = self.evaluate(&member.expression, scope);
                    match self.known_text(&key) {
                        Some(name) if self.heap.items(&object).is_none() => (object, name),
                        _ => {
                            let function = self.indexed(&object, &key);
                            let arguments = self.arguments(&of.arguments, scope);
                            self.at = at;
                            return self.call(&function, arguments);
                        }
                    }
                }
                member => {
                    let (object, name) = self.object_and_name(member, scope);
                    (object, name.unwrap_or_default())
                }
            };
            let before = (self.notes.len(), self.steps.len());
            let arguments = self.arguments(&of.arguments, scope);
            self.at = at;
            if let JsValue::Builtin(path) = &object
                && matches!(&**path, "console" | "metric")
                && self.requests_in(before.1) == 0
            {
                // What is only shown or counted changes nothing that is sent.
                self.notes.truncate(before.0);
                return JsValue::Undefined;
            }
            return self.call_method(object.certain(), &name, arguments);
        }
        let function = match &of.callee {
            Expression::Super(_) => JsValue::builtin("super"),
            callee => self.evaluate(callee, scope),
        };
        let arguments = self.arguments(&of.arguments, scope);
        self.at = at;
        if let JsValue::Builtin(path) = &function
            && &**path == "super"
        {
            return self.call_super(arguments, scope);
        }
        self.call(&function, arguments)
    }

    /// How many requests there are among the steps from this one on.
    fn requests_in(&self, from: usize) -> usize {
        let count = |step: &K6Step| match step {
            K6Step::Request(_) => 1,
            K6Step::Parallel(steps) => steps.len(),
            _ => 0,
        };
        self.steps.iter().skip(from).map(count).sum()
    }

    fn arguments(&mut self, of: &'a [Argument<'a>], scope: usize) -> Arguments<'a> {
        let mut arguments = Vec::new();
        for argument in of {
            match argument {
                Argument::SpreadElement(of) => self.spread(of, scope, &mut arguments),
                other => {
                    if let Some(expression) = other.as_expression() {
                        arguments.push(self.evaluate(expression, scope));
                    }
                }
            }
        }
        arguments
    }

    /// Calls what is a property of something.
    fn call_method(
        &mut self,
        object: JsValue<'a>,
        name: &str,
        arguments: Arguments<'a>,
    ) -> JsValue<'a> {
        if name == "then" {
            // What is waited for is there at once.
            return match arguments.first() {
                Some(next @ JsValue::Function(_)) => self.call(&next.clone(), vec![object]),
                _ => object,
            };
        }
        if name == "finally"
            && let Some(last @ JsValue::Function(_)) = arguments.first()
        {
            self.call(&last.clone(), Vec::new());
        }
        if matches!(name, "catch" | "finally") {
            return object;
        }
        match &object {
            JsValue::Builtin(path) => match self.builtin_member(path, name) {
                JsValue::Builtin(path) => self.call_builtin(&path, arguments),
                other => self.call(&other, arguments),
            },
            JsValue::Heap(_) if self.heap.items(&object).is_none() => {
                match self.member(&object, name) {
                    JsValue::Undefined => self.call_object(&object, name, &arguments),
                    JsValue::Function(function) if function.this.is_none() => {
                        self.call_with(&function, Some(object), arguments)
                    }
                    function => self.call(&function, arguments),
                }
            }
            JsValue::Class(..) => {
                let function = self.member(&object, name);
                self.call(&function, arguments)
            }
            JsValue::Function(_) if matches!(name, "call" | "bind" | "apply") => {
                if name == "bind" {
                    return object;
                }
                let arguments = arguments.into_iter().skip(1).collect();
                self.call(&object, arguments)
            }
            _ => {
                let lines = self.notes.len();
                let given = arguments.clone();
                let value = match &object {
                    JsValue::Part(part) => self.call_response(&part.clone(), name, arguments),
                    _ => self.call_value(object, name, arguments),
                };
                if matches!(value, JsValue::Unknown(_)) && self.notes.len() == lines {
                    self.leave_out_functions(name, &given);
                }
                value
            }
        }
    }

    /// Functions that are given to a method that is not followed: what they send is lost.
    fn leave_out_functions(&mut self, name: &str, arguments: &[JsValue<'a>]) {
        for function in arguments.iter().filter(|of| matches!(of, JsValue::Function(_))) {
            let before = self.snapshot();
            let has_thrown = self.has_thrown;
            let pending = self.pending.len();
            self.call(function, vec![JsValue::unknown("what is known only at run time"); 3]);
            self.flagged(pending);
            let is_lost = self.sent_since(&before) || self.lost_since(&before) > 0;
            self.restore(&before);
            self.has_thrown = has_thrown;
            if is_lost {
                self.leave_out(format!("a call of '{name}': what its function does"));
            }
        }
    }

    /// Calls a function.
    pub(super) fn call(&mut self, function: &JsValue<'a>, arguments: Arguments<'a>) -> JsValue<'a> {
        match function {
            JsValue::Function(function) => {
                let this = function.this.clone();
                self.call_with(function, this, arguments)
            }
            JsValue::Builtin(path) => self.call_builtin(path, arguments),
            JsValue::Maybe(maybe) => self.call(&maybe.1.clone(), arguments),
            JsValue::Unknown(what) => {
                self.leave_out(format!("a call of {what}"));
                JsValue::Unknown(Rc::clone(what))
            }
            JsValue::Undefined | JsValue::Null => {
                self.leave_out("a call of something that is not there");
                JsValue::unknown("what a call gives that is not followed")
            }
            _ => JsValue::unknown("what a call gives that is not followed"),
        }
    }

    pub(super) fn call_with(
        &mut self,
        function: &Rc<JsFunction<'a>>,
        this: Option<JsValue<'a>>,
        arguments: Arguments<'a>,
    ) -> JsValue<'a> {
        let unknown = JsValue::unknown("what a call gives that is too deep");
        let (module, at) = (self.module, self.at);
        let value = self.deeper(unknown, |own| own.follow(function, this, arguments));
        (self.module, self.at) = (module, at);
        value
    }

    fn follow(
        &mut self,
        function: &Rc<JsFunction<'a>>,
        this: Option<JsValue<'a>>,
        arguments: Arguments<'a>,
    ) -> JsValue<'a> {
        let scope = self.heap.scope(Some(function.scope));
        self.module = function.module;
        let (parameters, body, is_expression) = match function.code {
            FunctionCode::Arrow(arrow) => (&arrow.params, Some(&arrow.body), arrow.expression),
            FunctionCode::Function(function) => (&function.params, function.body.as_ref(), false),
        };
        if let Some(this) = this {
            self.heap.declare(scope, "this", this);
        }
        for (at, parameter) in parameters.items.iter().enumerate() {
            self.bind(&parameter.pattern, argument(&arguments, at), scope);
        }
        if let Some(rest) = &parameters.rest {
            let others = arguments.iter().skip(parameters.items.len()).cloned().collect();
            let others = self.heap.list(others);
            self.bind(&rest.argument, others, scope);
        }
        let Some(body) = body else {
            return JsValue::Undefined;
        };
        if is_expression && let Some(Statement::ExpressionStatement(of)) = body.statements.first() {
            return self.evaluate(&of.expression, scope);
        }
        let pending = self.pending.len();
        let flow = self.statements(&body.statements, scope);
        let value = match flow {
            K6Flow::Return(value) => value,
            K6Flow::Throw => {
                self.has_thrown = true;
                JsValue::Undefined
            }
            _ => JsValue::Undefined,
        };
        let mut own = self.pending.iter().skip(pending);
        let Some(first) = own.position(|branch| matches!(branch.flow, K6Flow::Return(_))) else {
            // What ends the iteration ends what called this too.
            return value;
        };
        let (value, left) = self.returned(pending + first, value);
        self.leave_by_flags(left);
        value
    }

    pub(super) fn new_expression(
        &mut self,
        of: &'a NewExpression<'a>,
        scope: usize,
    ) -> JsValue<'a> {
        let class = self.evaluate(&of.callee, scope);
        let arguments = self.arguments(&of.arguments, scope);
        self.at = of.span.start;
        match class {
            JsValue::Class(class, scope) => {
                let object = self.heap.object_of(JsValue::Class(class, scope));
                self.deeper((), |own| own.construct(class, scope, &object, arguments));
                object
            }
            JsValue::Builtin(path) => self.new_builtin(&path, arguments),
            JsValue::Function(function) => {
                let object = self.heap.object(Vec::new());
                self.call_with(&function, Some(object.clone()), arguments);
                object
            }
            JsValue::Unknown(what) => JsValue::Unknown(what),
            _ => JsValue::unknown("an object of a class that is not known"),
        }
    }

    /// Gives an object what its class has, and calls the constructor.
    fn construct(
        &mut self,
        class: &'a Class<'a>,
        scope: usize,
        object: &JsValue<'a>,
        arguments: Arguments<'a>,
    ) {
        let mut constructor = None;
        let JsValue::Heap(at) = object else {
            return;
        };
        let inner = self.heap.scope(Some(scope));
        self.heap.declare(inner, "this", object.clone());
        for element in &class.body.body {
            match element {
                ClassElement::PropertyDefinition(property) if !property.r#static => {
                    let name = self.key(&property.key, property.computed, inner);
                    let value = property.value.as_ref().map(|value| self.evaluate(value, inner));
                    let value = value.unwrap_or(JsValue::Undefined);
                    self.heap.set_entries(*at, vec![(name, value)]);
                }
                ClassElement::MethodDefinition(method)
                    if method.kind == MethodDefinitionKind::Constructor =>
                {
                    constructor = Some(&method.value);
                }
                _ => {}
            }
        }
        let parent = class.super_class.as_ref().map(|parent| self.evaluate(parent, scope));
        match (constructor, parent) {
            (Some(function), parent) => {
                if let Some(parent) = parent {
                    self.heap.declare(inner, "super ", parent);
                }
                let code = FunctionCode::Function(function);
                let function = self.closure(code, inner, Some(object.clone()));
                self.call(&function, arguments);
            }
            (None, Some(JsValue::Class(parent, scope))) => {
                self.deeper((), |own| own.construct(parent, scope, object, arguments));
            }
            _ => {}
        }
    }

    /// `super.NAME(…)`.
    fn call_of_parent(
        &mut self,
        name: Option<&'a str>,
        arguments: &'a [Argument<'a>],
        scope: usize,
    ) -> JsValue<'a> {
        let parent = self.heap.variable(scope, "super ").cloned();
        let this = self.heap.variable(scope, "this").cloned();
        let arguments = self.arguments(arguments, scope);
        match (parent, this, name) {
            (Some(JsValue::Class(parent, scope)), Some(this), Some(name)) => {
                let function = self.method(parent, scope, name, &this);
                self.call(&function, arguments)
            }
            _ => {
                self.leave_out("a call of 'super'");
                JsValue::unknown("what a call of 'super' gives")
            }
        }
    }

    fn call_super(&mut self, arguments: Arguments<'a>, scope: usize) -> JsValue<'a> {
        let parent = self.heap.variable(scope, "super ").cloned();
        let this = self.heap.variable(scope, "this").cloned();
        if let (Some(JsValue::Class(parent, scope)), Some(this)) = (parent, this) {
            self.deeper((), |own| own.construct(parent, scope, &this, arguments));
        } else {
            self.leave_out("a call of 'super'");
        }
        JsValue::Undefined
    }

    /// `group(NAME, FUNCTION)`.
    pub(super) fn group(&mut self, arguments: &[JsValue<'a>]) -> JsValue<'a> {
        let name = argument(arguments, 0);
        let name = self.text_of(&name).map(|name| name.template());
        let name = name.unwrap_or_else(|_| "group".to_owned());
        self.open();
        let pending = self.pending.len();
        let value = self.call(&argument(arguments, 1), Vec::new());
        let has_thrown = self.has_thrown;
        let left = self.flagged(pending);
        let steps = self.close();
        self.put_flags(left.iter().map(|(flag, _)| flag));
        if !steps.is_empty() {
            self.steps.push(K6Step::Group { name, steps });
        }
        self.leave_by_flags(left);
        self.has_thrown = has_thrown;
        value
    }

    /// `fail()` and its kin: the iteration ends.
    pub(super) fn fail(&mut self) -> JsValue<'a> {
        self.has_thrown = true;
        JsValue::Undefined
    }

    /// A predicate of something.
    pub(super) fn asked(&mut self, predicate: &JsValue<'a>, of: JsValue<'a>) -> K6Test<'a> {
        self.asked_with(predicate, vec![of])
    }

    /// A predicate of all that a call gets.
    pub(super) fn asked_with(
        &mut self,
        predicate: &JsValue<'a>,
        arguments: Arguments<'a>,
    ) -> K6Test<'a> {
        // What it takes to branch there is not taken: it becomes a test alone.
        let before = self.snapshot();
        let pending = self.pending.len();
        let value = self.call(predicate, arguments);
        self.flagged(pending);
        let test = self.truthy(value);
        let has_sent = self.sent_since(&before);
        let lost: Vec<_> = self.left_out_since(&before).cloned().collect();
        self.restore(&before);
        self.notes.extend(lost);
        if has_sent {
            self.leave_out("what a predicate sends");
            return K6Test::Unknown(Rc::from("what a predicate sends"));
        }
        test
    }
}
