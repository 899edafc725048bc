//! Pages of HTML, as scripts have them: their elements are numbers. What walks among these is in
//! `js/html.js`.

use crate::failure::throw;
use crate::shared::{Held, Shared};
use knee_load::session::ElementTree;
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::Constructor;
use rquickjs::{Class, Ctx, Function, JsLifetime, Object, Result};
use std::rc::Rc;

/// Bytes that a page takes as a tree, by those of its HTML.
const TREE_FACTOR: usize = 8;

struct Page {
    tree: ElementTree,
    _held: Held,
}

impl<'js> Trace<'js> for Page {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

// SAFETY: it holds nothing of a runtime.
unsafe impl<'js> JsLifetime<'js> for Page {
    type Changed<'to> = Page;
}

impl<'js> JsClass<'js> for Page {
    const NAME: &'static str = "Page";
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

/// The functions that read pages.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>, knee: &Object<'js>) -> Result<()> {
    type This<'js> = Class<'js, Page>;
    let own = Rc::clone(shared);
    let page = move |ctx: Ctx<'js>, html: String| {
        let _held = Held::new(&ctx, &own, html.len() * TREE_FACTOR)?;
        Class::instance(ctx, Page { tree: ElementTree::read(html.as_bytes()), _held })
    };
    knee.set("page", Function::new(ctx.clone(), page)?)?;
    // The element that each one is in, -1 for none.
    let parents = |page: This<'js>| -> Vec<i32> {
        page.borrow()
            .tree
            .parents()
            .map(|parent| parent.map_or(-1, |parent| parent as i32))
            .collect()
    };
    knee.set("parents", Function::new(ctx.clone(), parents)?)?;
    let matching = |ctx: Ctx<'js>, page: This<'js>, selector: String| {
        page.borrow().tree.matching(&selector).map_err(|why| throw(&ctx, &why.to_string()))
    };
    knee.set("matching", Function::new(ctx.clone(), matching)?)?;
    let part = |page: This<'js>, number: u32, part: String| page.borrow().tree.part(number, &part);
    knee.set("part", Function::new(ctx.clone(), part)?)?;
    let attributes = |ctx: Ctx<'js>, page: This<'js>, number: u32| {
        let all = Object::new(ctx)?;
        for (name, value) in page.borrow().tree.attributes(number) {
            all.set(name, value)?;
        }
        Result::Ok(all)
    };
    knee.set("attributes", Function::new(ctx.clone(), attributes)?)
}
