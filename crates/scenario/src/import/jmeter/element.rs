//! Elements of a test plan: a tag with properties, and the tree of its children behind it.

use crate::import::grammar::LineStarts;
use roxmltree::Node;
use std::rc::Rc;

/// An element of the plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct JmeterElement<'a> {
    node: Node<'a, 'a>,
    /// The `hashTree` of its children.
    tree: Option<Node<'a, 'a>>,
}

impl<'a> JmeterElement<'a> {
    /// The elements of a `hashTree` that are enabled. Each may have the tree of its children
    /// behind it. `disabled` counts the others, those below them among them.
    pub(super) fn list(tree: Node<'a, 'a>, disabled: &mut usize) -> Vec<JmeterElement<'a>> {
        let mut nodes = tree.children().filter(Node::is_element).peekable();
        let mut elements = Vec::new();
        while let Some(node) = nodes.next() {
            if node.has_tag_name("hashTree") {
                continue;
            }
            let tree = nodes.next_if(|next| next.has_tag_name("hashTree"));
            if node.attribute("enabled") == Some("false") {
                let below = tree.iter().flat_map(Node::descendants);
                let is_one = |n: &Node| n.has_attribute("testclass");
                *disabled += 1 + below.filter(is_one).count();
            } else {
                elements.push(JmeterElement { node, tree });
            }
        }
        elements
    }

    /// The enabled elements below it.
    pub(super) fn children(self) -> Vec<JmeterElement<'a>> {
        self.list_below(&mut 0)
    }

    /// The same; `disabled` counts the others.
    pub(super) fn list_below(self, disabled: &mut usize) -> Vec<JmeterElement<'a>> {
        self.tree.map_or_else(Vec::new, |tree| JmeterElement::list(tree, disabled))
    }

    /// Its kind, without the packages of a class.
    pub(super) fn kind(self) -> &'a str {
        let tag = self.node.tag_name().name();
        tag.rsplit('.').next().unwrap_or(tag)
    }

    /// The name that the author gave it.
    pub(super) fn name(self) -> &'a str {
        let own = self.node.attribute("testname");
        own.or(self.node.attribute("name")).unwrap_or_default()
    }

    /// What it is, for a line about it.
    pub(super) fn told(self, lines: &LineStarts) -> String {
        let line = lines.line(self.place());
        format!("line {line}: {} '{}'", self.kind(), self.name())
    }

    /// A property as it stands in the file, `""` where there is none.
    pub(super) fn text(self, name: &str) -> &'a str {
        self.given(name).unwrap_or_default()
    }

    /// A property that is in the file.
    pub(super) fn given(self, name: &str) -> Option<&'a str> {
        let node = self.inner(name)?.node;
        let value = node.children().find(|child| child.has_tag_name("value"));
        Some(value.unwrap_or(node).text().unwrap_or_default())
    }

    /// A property that is `true` or `false`.
    pub(super) fn flag(self, name: &str) -> bool {
        self.text(name).trim() == "true"
    }

    /// An element in a property, or the property itself.
    pub(super) fn inner(self, name: &str) -> Option<JmeterElement<'a>> {
        let is_it = |node: &Node| {
            // Numbers with a point have their name in an element.
            let inside = || node.children().find(|child| child.has_tag_name("name"));
            match node.attribute("name") {
                Some(own) => own == name,
                None => inside().and_then(|inside| inside.text()) == Some(name),
            }
        };
        let node = self.node.children().find(is_it)?;
        Some(JmeterElement { node, tree: None })
    }

    /// The elements in a property that is a list of them, or in this element.
    pub(super) fn listed(self, name: &str) -> Vec<JmeterElement<'a>> {
        let list = if name.is_empty() { Some(self) } else { self.inner(name) };
        let nodes = list.into_iter().flat_map(|list| list.node.children());
        let nodes = nodes.filter(|node| node.is_element() && node.has_attribute("name"));
        nodes.map(|node| JmeterElement { node, tree: None }).collect()
    }

    /// The texts in a property that is a list of them, or in this element.
    pub(super) fn texts(self, name: &str) -> Vec<&'a str> {
        let texts = self.listed(name).into_iter();
        texts.map(|of| of.node.text().unwrap_or_default()).collect()
    }

    /// All properties, by name and text.
    pub(super) fn properties(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let nodes = self.node.children().filter(Node::is_element);
        nodes.filter_map(|node| Some((node.attribute("name")?, node.text().unwrap_or_default())))
    }

    /// Its place in the file, which no other element has.
    pub(super) fn place(self) -> usize {
        self.node.range().start
    }
}

/// The elements whose settings hold in a tree: its own, and those around it.
#[derive(Clone, Debug, Default)]
pub(super) struct JmeterScope<'a> {
    own: Vec<JmeterElement<'a>>,
    outer: Option<Rc<JmeterScope<'a>>>,
}

impl<'a> JmeterScope<'a> {
    /// The scope of a tree in another.
    pub(super) fn with(self: &Rc<Self>, own: Vec<JmeterElement<'a>>) -> Rc<JmeterScope<'a>> {
        Rc::new(JmeterScope { own, outer: Some(self.clone()) })
    }

    /// All elements of these kinds, the inner ones first.
    pub(super) fn all(&self, kinds: &[&str]) -> Vec<JmeterElement<'a>> {
        let mut scopes = vec![self];
        while let Some(outer) = scopes.last().and_then(|scope| scope.outer.as_deref()) {
            scopes.push(outer);
        }
        let elements = scopes.into_iter().flat_map(|scope| scope.own.iter());
        elements.filter(|element| kinds.contains(&element.kind())).copied().collect()
    }

    /// A property of a request: its own, or that of the innermost defaults that have it.
    pub(super) fn setting(&self, request: JmeterElement<'a>, name: &str) -> &'a str {
        let own = Some(request.text(name)).filter(|text| !text.trim().is_empty());
        let defaults = || {
            let defaults = self.all(&["ConfigTestElement"]).into_iter();
            defaults.map(|of| of.text(name)).find(|text| !text.trim().is_empty())
        };
        own.or_else(defaults).unwrap_or_default()
    }
}
