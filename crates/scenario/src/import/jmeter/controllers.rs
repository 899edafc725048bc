//! Controllers: what is repeated, chosen, grouped or done under a condition.

use super::scope::PlanScope;
use super::{DEPTH_MAX, PlanItem, PlanWalk, items, property};
use crate::import::{
    ImportedCondition, ImportedRelation, ImportedRepeat, ImportedStep, ImportedText,
};
use roxmltree::Node;

/// The most passes of a loop by a condition.
const PASSES_MAX: u32 = 1_000;

/// Controllers whose steps are done in another way than the plan says, and in which.
const OTHERWISE: [(&str, &str); 5] = [
    ("OnceOnlyController", "once in each session, not in each thread"),
    ("RandomOrderController", "its parts are done in the order of the plan"),
    ("ForeachController", "its steps are done once, all of them"),
    ("RuntimeController", "its steps are done once, all of them"),
    ("SwitchController", "its steps are done once, all of them"),
];

impl PlanWalk {
    /// Imports the elements of a tree. Settings hold for all beside them, before or after.
    pub(super) fn steps(&mut self, tree: Node, outer: &PlanScope, depth: usize) {
        if depth > DEPTH_MAX {
            return self.all.leave_out("what lies more than 100 levels deep");
        }
        let (items, disabled) = items(tree);
        self.disabled += disabled;
        let mut scope = outer.clone();
        items.iter().for_each(|(element, _)| scope.take(*element, &mut self.all));
        items.into_iter().for_each(|item| self.item(item, &scope, depth));
    }

    /// One element.
    fn item(&mut self, (element, below): PlanItem, scope: &PlanScope, depth: usize) {
        let tag = element.tag_name().name();
        let constant =
            |scope: &PlanScope, name| scope.constant(&property(element, name).unwrap_or_default());
        match tag {
            "HTTPSamplerProxy" | "HTTPSampler" => self.sample(element, below, scope),
            "GenericController" | "hashTree" | "CriticalSectionController" => {
                self.inside(below, scope, depth);
            }
            "TransactionController" => {
                let name = element.attribute("testname").unwrap_or_default().to_owned();
                let steps = self.collected(below, scope, depth);
                self.all.push(ImportedStep::Group { name, steps });
            }
            "LoopController" => match constant(scope, "LoopController.loops").trim().parse::<u64>()
            {
                Ok(times @ 1..=1_000_000_000) => {
                    let steps = self.collected(below, scope, depth);
                    let times = ImportedRepeat::Times(times.to_string().into());
                    self.all.push(ImportedStep::Repeat { times, variable: None, steps });
                }
                Ok(0) => {}
                _ => {
                    self.once(element, below, (scope, depth), "an endless loop, or one by a value")
                }
            },
            "IfController" => self.when(element, below, scope, depth),
            "WhileController" => self.while_so(element, below, scope, depth),
            "RandomController" | "InterleaveControl" => {
                if tag == "InterleaveControl" {
                    self.leave_out(element, "one of its parts by chance in place of in turn");
                }
                self.one_of(below, scope, depth);
            }
            "ThroughputController" => self.share(element, below, scope, depth),
            tag if PlanScope::takes(tag) => {}
            "ConstantThroughputTimer" | "PreciseThroughputTimer" => {
                let per_minute = constant(scope, "throughput");
                self.leave_out(element, &format!("'{per_minute}': write a rate under load"));
            }
            tag => {
                let others = OTHERWISE.iter().find(|(other, _)| *other == tag);
                let effect = others.map_or("there is nothing of its kind; it is not done", |o| o.1);
                self.once(element, below, (scope, depth), effect);
            }
        }
    }

    fn inside(&mut self, below: Option<Node>, scope: &PlanScope, depth: usize) {
        if let Some(below) = below {
            self.steps(below, scope, depth + 1);
        }
    }

    /// The steps below an element, which are not yet among those of the session.
    fn collected(
        &mut self,
        below: Option<Node>,
        scope: &PlanScope,
        depth: usize,
    ) -> Vec<ImportedStep> {
        self.all.open();
        self.inside(below, scope, depth);
        self.all.close()
    }

    /// Steps that are done in another way than the plan says.
    fn once(
        &mut self,
        element: Node,
        below: Option<Node>,
        (scope, depth): (&PlanScope, usize),
        effect: &str,
    ) {
        self.leave_out(element, effect);
        self.inside(below, scope, depth);
    }

    fn while_so(&mut self, element: Node, below: Option<Node>, scope: &PlanScope, depth: usize) {
        let text = property(element, "WhileController.condition").unwrap_or_default();
        let steps = self.collected(below, scope, depth);
        match condition_of(&text, scope) {
            Some(condition) => {
                let times = ImportedRepeat::While(condition, PASSES_MAX);
                self.all.push(ImportedStep::Repeat { times, variable: None, steps });
            }
            None => {
                self.leave_out(element, &format!("'{text}': its steps are done once"));
                steps.into_iter().for_each(|step| self.all.push(step));
            }
        }
    }

    fn when(&mut self, element: Node, below: Option<Node>, scope: &PlanScope, depth: usize) {
        let text = property(element, "IfController.condition").unwrap_or_default();
        let steps = self.collected(below, scope, depth);
        match condition_of(&text, scope) {
            Some(condition) => {
                self.all.push(ImportedStep::When { condition, steps, otherwise: Vec::new() });
            }
            None => self.leave_out(element, &format!("'{text}': its steps are not done")),
        }
    }

    /// One of the elements below, each as likely.
    fn one_of(&mut self, below: Option<Node>, scope: &PlanScope, depth: usize) {
        let Some(below) = below else { return };
        let (items, disabled) = items(below);
        self.disabled += disabled;
        let mut scope = scope.clone();
        items.iter().for_each(|(element, _)| scope.take(*element, &mut self.all));
        let mut choices = Vec::new();
        for item in items {
            self.all.open();
            self.item(item, &scope, depth + 1);
            choices.push((1, self.all.close()));
        }
        choices.retain(|(_, steps)| !steps.is_empty());
        if !choices.is_empty() {
            self.all.push(ImportedStep::Choose(choices));
        }
    }

    /// Steps that are done in a share of the sessions.
    fn share(&mut self, element: Node, below: Option<Node>, scope: &PlanScope, depth: usize) {
        let number = |name: &str| {
            let of_name = element.descendants().filter(|n| n.attribute("name") == Some(name));
            let mut texts = of_name.filter_map(|n| n.text()).map(str::trim);
            texts.find_map(|text| text.parse::<f64>().ok())
        };
        let is_percent = number("ThroughputController.style") == Some(1.0);
        // The number stands in an element of its own.
        let value = element
            .descendants()
            .filter(|n| n.has_tag_name("value"))
            .find_map(|n| n.text()?.trim().parse::<f64>().ok());
        let percent = number("ThroughputController.percentThroughput").or(value);
        match percent.filter(|percent| is_percent && (0.0..=100.0).contains(percent)) {
            Some(100.0) => self.inside(below, scope, depth),
            Some(0.0) => {}
            Some(percent) => {
                let steps = self.collected(below, scope, depth);
                let weight = (percent * 100.0).round() as u32;
                let choices = vec![(weight.max(1), steps), ((10_000 - weight).max(1), Vec::new())];
                if !choices[0].1.is_empty() {
                    self.all.push(ImportedStep::Choose(choices));
                }
            }
            None => {
                self.once(element, below, (scope, depth), "a number of executions: done each time")
            }
        }
    }
}

/// `"${x}" == "y"`, also as the text of `__jexl3`, `__jexl2` or `__groovy`, joined by `&&` or `||`.
fn condition_of(text: &str, scope: &PlanScope) -> Option<ImportedCondition> {
    let text = text.trim();
    let inner = ["${__jexl3(", "${__jexl2(", "${__groovy("].into_iter().find_map(|call| {
        let rest = text.strip_prefix(call)?;
        rest.strip_suffix(")}").or_else(|| rest.strip_suffix(",)}"))
    });
    let text = inner.unwrap_or(text).trim().trim_end_matches(',').trim();
    let parts = |sign| text.split(sign).collect::<Vec<_>>();
    let (all, any) = (parts("&&"), parts("||"));
    match (all.len(), any.len()) {
        (1, 1) => comparison(text, scope),
        (2.., 1) => {
            let all = all.into_iter().map(|part| comparison(part, scope));
            all.collect::<Option<_>>().map(ImportedCondition::All)
        }
        (1, 2..) => {
            let any = any.into_iter().map(|part| comparison(part, scope));
            any.collect::<Option<_>>().map(ImportedCondition::Any)
        }
        _ => None,
    }
}

fn comparison(text: &str, scope: &PlanScope) -> Option<ImportedCondition> {
    const RELATIONS: [(&str, ImportedRelation); 6] = [
        ("==", ImportedRelation::Equal),
        ("!=", ImportedRelation::NotEqual),
        ("<=", ImportedRelation::AtMost),
        (">=", ImportedRelation::AtLeast),
        ("<", ImportedRelation::Less),
        (">", ImportedRelation::Greater),
    ];
    let (at, (sign, relation)) = RELATIONS
        .into_iter()
        .filter_map(|relation| Some((text.find(relation.0)?, relation)))
        .min_by_key(|(at, (sign, _))| (*at, std::cmp::Reverse(sign.len())))?;
    let side = |text: &str| -> Option<ImportedText> {
        let text = text.trim();
        let quoted =
            ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
        let is_plain = quoted.is_some()
            || text.parse::<f64>().is_ok()
            || text.starts_with("${") && text.ends_with('}');
        let mut unknown = Vec::new();
        let filled = scope.text(quoted.unwrap_or(text), &mut unknown);
        (is_plain && unknown.is_empty()).then_some(filled)
    };
    let (left, right) = (side(&text[..at])?, side(&text[at + sign.len()..])?);
    Some(ImportedCondition::Compare(left, relation, right))
}
