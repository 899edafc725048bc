//! Statements.

use super::interpreter::{K6Flow, K6Interpreter};
use super::loops::{LoopElements, always};
use super::value::{FunctionCode, JsFunction, JsValue, K6Test};
use oxc_ast::ast::*;
use oxc_span::GetSpan;
use std::rc::Rc;

impl<'a> K6Interpreter<'a, '_> {
    /// Follows statements in a scope of their own or of their function.
    pub(super) fn statements(&mut self, list: &'a [Statement<'a>], scope: usize) -> K6Flow<'a> {
        self.hoist(list, scope);
        for statement in list {
            match self.statement(statement, scope) {
                K6Flow::Normal => {}
                other => return other,
            }
            if self.fuel == 0 {
                return K6Flow::Throw;
            }
        }
        K6Flow::Normal
    }

    /// Functions are there before the statements above them, also those that are exported.
    pub(super) fn hoist(&mut self, list: &'a [Statement<'a>], scope: usize) {
        for statement in list {
            let function = match statement {
                Statement::FunctionDeclaration(function) => Some(function),
                Statement::ExportNamedDeclaration(of) => match &of.declaration {
                    Some(Declaration::FunctionDeclaration(function)) => Some(function),
                    _ => None,
                },
                Statement::ExportDefaultDeclaration(of) => match &of.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function) => Some(function),
                    _ => None,
                },
                _ => None,
            };
            if let Some(function) = function
                && let Some(id) = &function.id
            {
                let value = self.closure(FunctionCode::Function(function), scope, None);
                self.heap.declare(scope, id.name.as_str(), value);
            }
        }
    }

    pub(super) fn closure(
        &self,
        code: FunctionCode<'a>,
        scope: usize,
        this: Option<JsValue<'a>>,
    ) -> JsValue<'a> {
        JsValue::Function(Rc::new(JsFunction { code, scope, module: self.module, this }))
    }

    pub(super) fn statement(&mut self, statement: &'a Statement<'a>, scope: usize) -> K6Flow<'a> {
        self.at = statement.span().start;
        let flow = self.deeper(K6Flow::Throw, |own| own.one_statement(statement, scope));
        if self.has_thrown { K6Flow::Throw } else { flow }
    }

    fn one_statement(&mut self, statement: &'a Statement<'a>, scope: usize) -> K6Flow<'a> {
        match statement {
            Statement::ExpressionStatement(of) => {
                self.evaluate(&of.expression, scope);
            }
            Statement::VariableDeclaration(of) => self.declaration(of, scope),
            Statement::ClassDeclaration(class) => {
                if let Some(id) = &class.id {
                    self.heap.declare(scope, id.name.as_str(), JsValue::Class(class, scope));
                }
            }
            Statement::BlockStatement(block) => return self.block(&block.body, scope),
            Statement::IfStatement(of) => {
                let test = self.test(&of.test, scope);
                let mut then = |own: &mut Self| own.nested(&of.consequent, scope);
                let mut otherwise = |own: &mut Self| match &of.alternate {
                    Some(alternate) => own.nested(alternate, scope),
                    None => K6Flow::Normal,
                };
                return self.branch(test, &mut then, &mut otherwise);
            }
            Statement::ReturnStatement(of) => {
                let value = of.argument.as_ref().map(|value| self.evaluate(value, scope));
                return K6Flow::Return(value.unwrap_or(JsValue::Undefined));
            }
            Statement::ThrowStatement(of) => {
                self.evaluate(&of.argument, scope);
                return K6Flow::Throw;
            }
            Statement::BreakStatement(of) if of.label.is_none() => return K6Flow::Break,
            Statement::ContinueStatement(of) if of.label.is_none() => return K6Flow::Continue,
            Statement::LabeledStatement(of) => return self.statement(&of.body, scope),
            Statement::SwitchStatement(of) => return self.switch(of, scope),
            Statement::TryStatement(of) => return self.attempt(of, scope),
            Statement::WhileStatement(of) => {
                return self.while_loop(Some(&of.test), None, &of.body, scope, false);
            }
            Statement::DoWhileStatement(of) => {
                return self.while_loop(Some(&of.test), None, &of.body, scope, true);
            }
            Statement::ForStatement(of) => return self.for_loop(of, scope),
            Statement::ForOfStatement(of) => {
                let list = self.evaluate(&of.right, scope);
                return self.each(&of.left, list, &of.body, scope);
            }
            Statement::ForInStatement(of) => {
                let object = self.evaluate(&of.right, scope);
                let keys = self.keys(&object);
                return self.each(&of.left, keys, &of.body, scope);
            }
            Statement::BreakStatement(_) | Statement::ContinueStatement(_) => {
                self.leave_out("a jump to a label");
            }
            Statement::WithStatement(_) => self.leave_out("a 'with' statement"),
            Statement::TSEnumDeclaration(_) | Statement::TSModuleDeclaration(_) => {
                self.leave_out("an enum or a namespace");
            }
            // Functions are there already; the others do nothing when they are reached.
            _ => {}
        }
        K6Flow::Normal
    }

    fn block(&mut self, list: &'a [Statement<'a>], scope: usize) -> K6Flow<'a> {
        let inner = self.heap.scope(Some(scope));
        self.statements(list, inner)
    }

    /// A statement in a scope of its own.
    pub(super) fn nested(&mut self, statement: &'a Statement<'a>, scope: usize) -> K6Flow<'a> {
        let inner = self.heap.scope(Some(scope));
        self.statement(statement, inner)
    }

    pub(super) fn declaration(&mut self, of: &'a VariableDeclaration<'a>, scope: usize) {
        for declarator in &of.declarations {
            let value = declarator.init.as_ref().map(|value| self.evaluate(value, scope));
            let value = value.unwrap_or(JsValue::Undefined);
            self.at = declarator.span.start;
            self.bind(&declarator.id, value, scope);
        }
    }

    /// Declares the names of a pattern.
    pub(super) fn bind(
        &mut self,
        pattern: &'a BindingPattern<'a>,
        value: JsValue<'a>,
        scope: usize,
    ) {
        match &pattern.kind {
            BindingPatternKind::BindingIdentifier(id) => {
                let value = self.called(value, id.name.as_str());
                self.heap.declare(scope, id.name.as_str(), value);
            }
            BindingPatternKind::AssignmentPattern(of) => {
                let value = match value {
                    JsValue::Undefined => self.evaluate(&of.right, scope),
                    part @ JsValue::Part(_) if part.truth().is_none() => {
                        self.with_default(part, &of.right, scope)
                    }
                    value => value,
                };
                self.bind(&of.left, value, scope);
            }
            BindingPatternKind::ObjectPattern(of) => {
                let mut taken = Vec::new();
                for property in &of.properties {
                    let name = self.key(&property.key, property.computed, scope);
                    let part = self.member(&value, &name);
                    self.bind(&property.value, part, scope);
                    taken.push(name);
                }
                if let Some(rest) = &of.rest {
                    let mut others = self.spread_entries(&value);
                    others.retain(|(key, _)| !taken.contains(key));
                    let others = self.heap.object(others);
                    self.bind(&rest.argument, others, scope);
                }
            }
            BindingPatternKind::ArrayPattern(of) => {
                for (at, element) in of.elements.iter().enumerate() {
                    if let Some(element) = element {
                        let part = self.member(&value, &at.to_string());
                        self.bind(element, part, scope);
                    }
                }
                if let Some(rest) = &of.rest {
                    let others = match (self.heap.items(&value), &value) {
                        (Some(items), _) => items.iter().skip(of.elements.len()).cloned().collect(),
                        (None, JsValue::Undefined | JsValue::Null) => Vec::new(),
                        (None, _) => vec![JsValue::unknown("the rest of a list")],
                    };
                    let others = self.heap.list(others);
                    self.bind(&rest.argument, others, scope);
                }
            }
        }
    }

    fn switch(&mut self, of: &'a SwitchStatement<'a>, scope: usize) -> K6Flow<'a> {
        let value = self.evaluate(&of.discriminant, scope);
        let inner = self.heap.scope(Some(scope));
        self.case(of, &value, 0, inner)
    }

    /// The cases from this one on.
    fn case(
        &mut self,
        of: &'a SwitchStatement<'a>,
        value: &JsValue<'a>,
        from: usize,
        scope: usize,
    ) -> K6Flow<'a> {
        let mut tested = of.cases.iter().enumerate().skip(from);
        let next = tested.find_map(|(at, case)| Some((at, case.test.as_ref()?)));
        let Some((at, test)) = next else {
            let default = of.cases.iter().position(|case| case.test.is_none());
            return default.map_or(K6Flow::Normal, |at| self.case_body(of, at, scope));
        };
        let other = self.evaluate(test, scope);
        let test = self.compare(value.clone(), BinaryOperator::StrictEquality, other);
        let mut then = |own: &mut Self| own.case_body(of, at, scope);
        let mut otherwise =
            |own: &mut Self| own.deeper(K6Flow::Throw, |own| own.case(of, value, at + 1, scope));
        self.branch(test, &mut then, &mut otherwise)
    }

    /// The statements of a case and of those that it runs into, up to `break`.
    fn case_body(&mut self, of: &'a SwitchStatement<'a>, at: usize, scope: usize) -> K6Flow<'a> {
        let pending = self.pending.len();
        let mut flow = K6Flow::Normal;
        for case in of.cases.iter().skip(at) {
            flow = self.statements(&case.consequent, scope);
            if !matches!(flow, K6Flow::Normal) {
                break;
            }
        }
        // A `break` in a condition leaves the cases: what follows it here lies in the other branch.
        self.end_branches(pending, |flow| matches!(flow, K6Flow::Break));
        if let K6Flow::Break = flow { K6Flow::Normal } else { flow }
    }

    fn attempt(&mut self, of: &'a TryStatement<'a>, scope: usize) -> K6Flow<'a> {
        let pending = self.pending.len();
        if of.finalizer.is_some() {
            self.open();
        }
        let mut flow = self.block(&of.block.body, scope);
        if let Some(handler) = &of.handler {
            let caught = self.end_branches(pending, |flow| matches!(flow, K6Flow::Throw));
            let is_quiet = handler.body.body.iter().all(is_quiet);
            self.at = handler.span.start;
            if matches!(flow, K6Flow::Throw) {
                self.has_thrown = false;
                let inner = self.heap.scope(Some(scope));
                if let Some(param) = &handler.param {
                    let value = JsValue::unknown("an error that was caught");
                    self.bind(&param.pattern, value, inner);
                }
                flow = self.statements(&handler.body.body, inner);
            } else if !is_quiet || caught {
                self.leave_out("a 'catch' block: what it does after an error is left out");
            }
        }
        match &of.finalizer {
            Some(finalizer) => self.finally(finalizer, pending, flow, scope),
            None => flow,
        }
    }

    /// Ends the steps of a `try` that ended by `flow`, and follows its `finally`, which is done
    /// however these were left.
    fn finally(
        &mut self,
        finalizer: &'a BlockStatement<'a>,
        pending: usize,
        flow: K6Flow<'a>,
        scope: usize,
    ) -> K6Flow<'a> {
        let left = self.flagged(pending);
        let steps = self.close();
        self.put_flags(left.iter().map(|(flag, _)| flag));
        self.steps.extend(steps);
        let has_thrown = std::mem::take(&mut self.has_thrown);
        match self.block(&finalizer.body, scope) {
            K6Flow::Normal => {
                self.leave_by_flags(left);
                self.has_thrown = has_thrown;
                flow
            }
            other => other,
        }
    }

    fn for_loop(&mut self, of: &'a ForStatement<'a>, scope: usize) -> K6Flow<'a> {
        let inner = self.heap.scope(Some(scope));
        match &of.init {
            Some(ForStatementInit::VariableDeclaration(declared)) => {
                self.declaration(declared, inner);
            }
            Some(init) => {
                if let Some(expression) = init.as_expression() {
                    self.evaluate(expression, inner);
                }
            }
            None => {}
        }
        self.while_loop(of.test.as_ref(), of.update.as_ref(), &of.body, inner, false)
    }

    fn while_loop(
        &mut self,
        test: Option<&'a Expression<'a>>,
        update: Option<&'a Expression<'a>>,
        body: &'a Statement<'a>,
        scope: usize,
        is_do: bool,
    ) -> K6Flow<'a> {
        let mut test = |own: &mut Self| match test {
            Some(test) => own.test(test, scope),
            None => K6Test::Known(true),
        };
        let mut body = |own: &mut Self, _: JsValue<'a>| {
            let flow = own.nested(body, scope);
            if let (K6Flow::Normal | K6Flow::Continue, Some(update)) = (&flow, update) {
                own.evaluate(update, scope);
            }
            flow
        };
        self.repeat(&mut test, LoopElements::None, &mut body, is_do)
    }

    fn each(
        &mut self,
        left: &'a ForStatementLeft<'a>,
        list: JsValue<'a>,
        body: &'a Statement<'a>,
        scope: usize,
    ) -> K6Flow<'a> {
        let name = match left {
            ForStatementLeft::VariableDeclaration(of) => {
                of.declarations.first().and_then(|d| d.id.get_identifier_name())
            }
            _ => None,
        };
        let name = name.map_or("item", |name| name.as_str()).to_owned();
        let elements = self.elements(list, &name);
        let mut body = |own: &mut Self, element: JsValue<'a>| {
            let inner = own.heap.scope(Some(scope));
            match left {
                ForStatementLeft::VariableDeclaration(of) => {
                    if let Some(declarator) = of.declarations.first() {
                        own.bind(&declarator.id, element, inner);
                    }
                }
                _ => {
                    if let Some(target) = left.as_assignment_target() {
                        own.assign(target, element, inner);
                    }
                }
            }
            own.statement(body, inner)
        };
        self.repeat(&mut always, elements, &mut body, false)
    }
}

/// Whether a statement of a handler does nothing but write to the console.
fn is_quiet(statement: &Statement) -> bool {
    let Statement::ExpressionStatement(of) = statement else {
        return matches!(statement, Statement::EmptyStatement(_));
    };
    let Expression::CallExpression(call) = &of.expression else {
        return false;
    };
    let Expression::StaticMemberExpression(member) = &call.callee else {
        return false;
    };
    matches!(&member.object, Expression::Identifier(id) if id.name == "console")
}
