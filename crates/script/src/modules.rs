//! Modules that scripts import: those of k6, and files below the script's folder.

use crate::built_in::{BUILT_IN, is_built_in};
use crate::failure::Failure;
use crate::shared::Shared;
use rquickjs::context::EvalOptions;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Ctx, Error, Exception, Function, Module, Object, Promise, Result, Runtime, Value};
use std::rc::Rc;

/// The module that imports what every script has and the script, and the one that imports the first
/// of these alone.
pub(crate) const ALL: &str = "knee:all";

/// See [`ALL`].
pub(crate) const FIRST: &str = "knee:first";

/// Modules that are refused, by how their names begin, and what to do instead.
const REFUSED: [(&str, &str); 8] = [
    ("k6/ws", "scripts speak HTTP alone: load WebSocket with 'knee run ws://…'"),
    ("k6/websockets", "scripts speak HTTP alone: load WebSocket with 'knee run ws://…'"),
    ("k6/net/grpc", "scripts speak HTTP alone: load gRPC with 'knee run grpc://…'"),
    ("k6/browser", "knee drives no browser: send the requests that the page sends"),
    ("k6/experimental", "experimental modules of k6 are not supported"),
    ("k6/x/", "extensions of k6 (xk6) are not supported"),
    ("k6/secrets", "give secrets by environment variables, and read them from __ENV"),
    ("k6/", "knee has no module of this name"),
];

/// Has a runtime load modules.
pub(crate) fn set_loader(runtime: &Runtime, shared: &Rc<Shared>) {
    runtime.set_loader(Modules(Rc::clone(shared)), Modules(Rc::clone(shared)));
}

struct Modules(Rc<Shared>);

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        *self.0.imported.borrow_mut() = (base.to_owned(), name.to_owned());
        resolve(base, name).map_err(|why| {
            let refused = (name.to_owned(), base.to_owned(), format!("import '{name}': {why}"));
            self.0.refused.borrow_mut().get_or_insert(refused);
            Error::new_resolving_message(base, name, why)
        })
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let script = &self.0.setup.script;
        if let Some(bytecode) = script.module(name) {
            // SAFETY: this engine wrote it, within this process.
            return unsafe { Module::load(ctx.clone(), &bytecode) };
        }
        // The first user of a script compiles a module, the others take what that one compiled.
        let built_in = BUILT_IN.iter().find(|(known, _)| *known == name);
        let source = match built_in {
            Some((_, source)) => (*source).into(),
            None => self.0.file(name).map_err(|why| {
                let (base, asked) = self.0.imported.borrow().clone();
                let why = format!("import '{asked}': {why}");
                self.0.refused.borrow_mut().get_or_insert((asked, base, why.clone()));
                Error::new_loading_message(name, why)
            })?,
        };
        let source = match built_in {
            None if is_common(&source) => of_common(ctx, name)?.into_bytes(),
            _ => source,
        };
        let declared = Module::declare(ctx.clone(), name, source);
        let module = declared.map_err(|error| {
            if !error.is_exception() {
                return error;
            }
            let thrown = ctx.catch();
            let Failure { at, message, .. } = Failure::of_value(&thrown);
            match message.strip_prefix("SyntaxError: ") {
                // The engine does not say where a regular expression stands.
                Some(what) if at.is_none() => {
                    Exception::throw_syntax(ctx, &format!("{what} (in {name})"))
                }
                _ => ctx.throw(thrown),
            }
        })?;
        let strip_debug = built_in.is_some();
        let options = WriteOptions { strip_source: true, strip_debug, ..WriteOptions::default() };
        script.set_module(name, module.write(options)?);
        Ok(module)
    }
}

/// Whether a file is a CommonJS module: it has what they have, and no statement of a module.
fn is_common(source: &[u8]) -> bool {
    let text = String::from_utf8_lossy(source);
    let is_statement = |line: &str| {
        let rest = ["import", "export"].iter().find_map(|word| line.strip_prefix(word));
        rest.is_some_and(|rest| rest.starts_with([' ', '{', '*', '"', '\'']))
    };
    let has_statement = text.lines().map(str::trim_start).any(is_statement);
    let marks = ["module.exports", "exports.", "exports[", "require(", "typeof exports"];
    !has_statement && marks.iter().any(|mark| text.contains(mark))
}

/// A module that exports what a CommonJS module has, which runs here for its names.
fn of_common<'js>(ctx: &Ctx<'js>, name: &str) -> Result<String> {
    let knee: Object<'js> = ctx.globals().get("__knee")?;
    let exports: Value<'js> = knee.get::<_, Function<'js>>("common")?.call((name,))?;
    let mut source = format!(
        "const m = globalThis.__knee.common({name});\n\
         export default m?.default === undefined ? m : m.default;\n",
        name = serde_json::Value::from(name)
    );
    let is_name = |name: &String| {
        let mut chars = name.chars();
        let begins = |c: char| c.is_alphabetic() || c == '_' || c == '$';
        name != "default"
            && chars.next().is_some_and(begins)
            && chars.all(|c| begins(c) || c.is_numeric())
    };
    let names = exports.as_object().map(Object::keys::<String>);
    for (number, name) in names.into_iter().flatten().flatten().filter(is_name).enumerate() {
        source += &format!("const e{number} = m.{name}; export {{ e{number} as {name} }};\n");
    }
    Ok(source)
}

/// The value of `require(name)` in a file: what a CommonJS module exports, or the namespace of
/// another one.
pub(crate) fn require<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    base: &str,
    name: &str,
) -> Result<Value<'js>> {
    let wrong = |why: String| Exception::throw_message(ctx, &format!("require('{name}'): {why}"));
    let found = resolve(base, name).map_err(wrong)?;
    if !is_built_in(&found) && is_common(&shared.file(&found).map_err(wrong)?) {
        let knee: Object<'js> = ctx.globals().get("__knee")?;
        return knee.get::<_, Function<'js>>("common")?.call((found,));
    }
    // From the module that has all, every name stands for itself.
    let load = format!("import({})", serde_json::Value::from(found));
    let mut options = EvalOptions::default();
    options.filename = Some(ALL.to_owned());
    ctx.eval_with_options::<Promise<'js>, _>(load, options)?.finish()
}

/// The name by which a module is loaded, as `base` asks for it; or why not.
fn resolve(base: &str, name: &str) -> std::result::Result<String, String> {
    if [ALL, FIRST].contains(&base) {
        return Ok(name.to_owned());
    }
    if BUILT_IN.iter().any(|(known, _)| *known == name && (name == "k6" || name.starts_with("k6/")))
    {
        return Ok(name.to_owned());
    }
    if name.ends_with(".ts") {
        return Err(typescript(name));
    }
    if let Some(library) = name.strip_prefix("https://jslib.k6.io/")
        && let Some((library @ ("k6-utils" | "k6-summary"), _)) = library.split_once('/')
    {
        return Ok(library.to_owned());
    }
    if name.starts_with("http://") || name.starts_with("https://") {
        let file = name.rsplit('/').next().unwrap_or_default();
        return Err(format!(
            "nothing is fetched: save it beside the script (curl -O {name}) and import './{file}'"
        ));
    }
    if let Some((_, why)) = REFUSED.iter().find(|(begin, _)| name.starts_with(begin)) {
        return Err((*why).to_owned());
    }
    if !name.starts_with('.') {
        return Err(format!("no module of k6: import './{name}' for a file beside the script"));
    }
    below(base, name)
}

/// What to do with TypeScript.
pub(crate) fn typescript(name: &str) -> String {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    format!(
        "TypeScript is not read: make JavaScript of it first (npx esbuild {name} --bundle \
         --format=esm --external:k6 '--external:k6/*' '--external:https://*' \
         --outfile={stem}.js)"
    )
}

/// The path from the script's folder of a file that `base` names.
pub(crate) fn below(base: &str, name: &str) -> std::result::Result<String, String> {
    if name.starts_with('/') || name.starts_with("file:") {
        return Err("only files below the script's folder are read".to_owned());
    }
    let mut parts: Vec<&str> = base.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => {
                return Err("only files below the script's folder are read".to_owned());
            }
            ".." => {}
            other => parts.push(other),
        }
    }
    Ok(parts.join("/"))
}

/// Where a file imports from a module, by the name that the module is loaded by.
pub(crate) fn import_of(source: &[u8], name: &str) -> Option<(u32, u32)> {
    let file = name.rsplit('/').next().unwrap_or_default();
    let is_import = |line: &&str| line.contains("from") || line.contains("import");
    let text = String::from_utf8_lossy(source);
    let at = text.lines().zip(1..).filter(|(line, _)| is_import(line));
    let found = at.filter_map(|(line, number)| {
        let begin = line.find(['\'', '"'])?;
        let named = &line[begin + 1..];
        let is_it = named.starts_with(name) || named.contains(&format!("/{file}"));
        is_it.then(|| (number, line[..begin].chars().count() as u32 + 1))
    });
    found.min()
}

/// Line and column of the first import of a module in a source.
pub(crate) fn position_of(source: &[u8], name: &str) -> Option<(u32, u32)> {
    let text = String::from_utf8_lossy(source);
    let quoted = ['\'', '"', '`'].map(|quote| format!("{quote}{name}{quote}"));
    text.lines().zip(1..).find_map(|(line, number)| {
        let at = quoted.iter().find_map(|quoted| line.find(&**quoted))?;
        Some((number, line[..at].chars().count() as u32 + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_or_refused() {
        for (base, name, want) in [
            ("main.js", "k6/http", "k6/http"),
            ("main.js", "./lib/a.js", "lib/a.js"),
            ("lib/a.js", "../b.js", "b.js"),
            ("a.js", "https://jslib.k6.io/k6-utils/1.4.0/index.js", "k6-utils"),
            ("a.js", "https://jslib.k6.io/k6-summary/0.1.0/index.js", "k6-summary"),
        ] {
            assert_eq!(resolve(base, name).as_deref(), Ok(want), "{name}");
        }
        for (base, name, why) in [
            ("main.js", "../b.js", "below the script's folder"),
            ("main.js", "./b.ts", "esbuild"),
            ("main.js", "k6/ws", "WebSocket"),
            ("main.js", "k6/x/sql", "xk6"),
            ("main.js", "lodash", "no module"),
            ("main.js", "https://jslib.k6.io/papaparse/5.1.1/index.js", "curl -O"),
        ] {
            let refused = resolve(base, name).unwrap_err();
            assert!(refused.contains(why), "{name}: {refused}");
        }
    }

    #[test]
    fn an_import_is_found_in_its_source() {
        let source = b"import a from 'x';\n  import b from \"k6/ws\";\n";
        assert_eq!(position_of(source, "k6/ws"), Some((2, 17)));
        assert_eq!(position_of(source, "k6"), None);
        let source = b"// from x\nimport { a } from './lib/x.js';\nimport b from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';";
        for (name, want) in
            [("lib/x.js", Some((2, 19))), ("k6-utils", Some((3, 15))), ("y.js", None)]
        {
            assert_eq!(import_of(source, name), want, "{name}");
        }
    }

    #[test]
    fn common_modules_are_told_from_others() {
        for (source, want) in [
            ("module.exports = { a: 1 };", true),
            (
                "(function (root, f) { typeof exports === 'object' ? f(exports) : f(root); })(this, f)",
                true,
            ),
            ("const a = require('./a.js');", true),
            ("import a from './a.js'; const b = require('./b.js');", false),
            ("export default 1; // module.exports", false),
            ("  export { a };", false),
            ("const exported = 1;", false),
        ] {
            assert_eq!(is_common(source.as_bytes()), want, "{source}");
        }
    }
}
