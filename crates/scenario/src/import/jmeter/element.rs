//! Elements of a test plan: a tag with properties, and the tree of its children behind it.

use roxmltree::Node;

/// An element of the plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct JmeterElement<'a> {
    node: Node<'a, 'a>,
    /// The `hashTree` of its children.
    tree: Option<Node<'a, 'a>>,
}

impl<'a> JmeterElement<'a> {
    /// The elements of a `hashTree`. Each may have the tree of its children behind it.
    pub(super) fn list(tree: Node<'a, 'a>) -> Vec<JmeterElement<'a>> {
        let mut nodes = tree.children().filter(Node::is_element).peekable();
        let mut elements = Vec::new();
        while let Some(node) = nodes.next() {
            if !node.has_tag_name("hashTree") {
                let tree = nodes.next_if(|next| next.has_tag_name("hashTree"));
                elements.push(JmeterElement { node, tree });
            }
        }
        elements.retain(|element| element.node.attribute("enabled") != Some("false"));
        elements
    }

    /// The enabled elements below it.
    pub(super) fn children(self) -> Vec<JmeterElement<'a>> {
        self.tree.map_or_else(Vec::new, JmeterElement::list)
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

    /// Its place in the file, which no other element has.
    pub(super) fn place(self) -> usize {
        self.node.range().start
    }
}
