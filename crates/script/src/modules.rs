//! Modules that scripts import: those of k6, and files below the script's folder.

use crate::failure::Failure;
use crate::shared::Shared;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Ctx, Error, Exception, Module, Result, Runtime};
use std::rc::Rc;

/// The module that makes what every script has, and the one that imports it and the script.
pub(crate) const CORE: &str = "knee:core";
pub(crate) const ALL: &str = "knee:all";

/// Built-in modules, by their names.
const BUILT_IN: [(&str, &str); 12] = [
    (CORE, include_str!("js/core.js")),
    ("k6", include_str!("js/k6.js")),
    ("k6/http", include_str!("js/http.js")),
    ("k6/data", include_str!("js/data.js")),
    ("k6/execution", include_str!("js/execution.js")),
    ("k6/metrics", include_str!("js/metrics.js")),
    ("k6/encoding", include_str!("js/encoding.js")),
    ("k6/crypto", include_str!("js/crypto.js")),
    ("k6/html", include_str!("js/html.js")),
    ("k6/options", "export default {};"),
    ("k6/timers", include_str!("js/timers.js")),
    ("k6-utils", include_str!("js/utils.js")),
];

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

/// Whether a file in a stack trace is a built-in module.
pub(crate) fn is_built_in(file: &str) -> bool {
    file.starts_with("knee:") || BUILT_IN.iter().any(|(name, _)| *name == file)
}

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

/// The name by which a module is loaded, as `base` asks for it; or why not.
fn resolve(base: &str, name: &str) -> std::result::Result<String, String> {
    if base == ALL {
        return Ok(name.to_owned());
    }
    if BUILT_IN
        .iter()
        .any(|(known, _)| *known == name && name.starts_with("k6") && name != "k6-utils")
    {
        return Ok(name.to_owned());
    }
    if name.ends_with(".ts") {
        return Err(typescript(name));
    }
    if name.starts_with("https://jslib.k6.io/k6-utils/") {
        return Ok("k6-utils".to_owned());
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
    }
}
