//! Records, counters and parameters: variables that have a value before any request.

use super::JmeterReader;
use super::element::JmeterElement;
use crate::import::collect::Collector;
use crate::import::{ImportedStep, ImportedText};
use knee_load::session::Deal;

const DATA: [&str; 2] = ["CSVDataSet", "RandomCSVDataSetConfig"];

impl<'a> JmeterReader<'a> {
    /// Takes the sets of records that a thread group has, its own and those of the plan.
    pub(super) fn records(&mut self, plan: &[JmeterElement<'a>], group: JmeterElement<'a>) {
        self.columns.clear();
        self.nameless_set = None;
        for element in plan.iter().filter(|element| DATA.contains(&element.kind())) {
            self.record(*element);
        }
        self.records_below(group, 0, false);
    }

    fn records_below(&mut self, of: JmeterElement<'a>, depth: usize, is_looped: bool) {
        for element in of.children() {
            if DATA.contains(&element.kind()) {
                self.record(element);
                if is_looped {
                    self.leave_out(
                        element,
                        "it is read in each pass of a loop; a session here has one record",
                    );
                }
            } else if depth < super::DEPTH_MAX {
                const LOOPS: [&str; 3] = ["LoopController", "WhileController", "ForeachController"];
                let is_looped = is_looped || LOOPS.contains(&element.kind());
                self.records_below(element, depth + 1, is_looped);
            }
        }
    }

    fn record(&mut self, element: JmeterElement<'a>) {
        let Some(file) = self.constant(element.text("filename")).filter(|file| !file.is_empty())
        else {
            self.leave_out(element, "its file is not known: its variables have no values");
            return;
        };
        let name = file.rsplit(['/', '\\']).next().unwrap_or(&file);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let set = Collector::variable(stem);
        let wanted = if name.ends_with(".csv") { file.clone() } else { format!("{stem}.csv") };
        let order = match (element.kind(), element.given("recycle")) {
            ("RandomCSVDataSetConfig", _) => Deal::Random,
            (_, Some("false")) => Deal::Unique,
            _ => Deal::InOrder,
        };
        let Some((set, taken)) = self.all.data(&set, &wanted, order) else {
            self.leave_out(element, "its file cannot be one of a scenario");
            return;
        };
        if taken != file {
            self.all.remark(format!("The file '{file}' has to be {taken} beside this one."));
        }
        let delimiter = element.given("delimiter").unwrap_or(",");
        if !matches!(delimiter, "," | "") {
            self.leave_out(
                element,
                &format!("its values are divided by '{delimiter}': by ',' here"),
            );
        }
        if element.given("stopThread") == Some("false") && order == Deal::Unique {
            self.leave_out(element, "after its last record values are <EOF>; here the load ends");
        }
        if element.text("shareMode") == "shareMode.thread" {
            self.leave_out(element, "each thread reads it from its begin; here all share it");
        }
        let names = self.constant(element.text("variableNames")).unwrap_or_default();
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        if names == [""] {
            self.nameless_set = Some(set);
            return;
        }
        // A column has the name that templates can have.
        let column = |name: &str| match name {
            "" => String::new(),
            name => Collector::variable(name),
        };
        let columns: Vec<String> = names.iter().map(|name| column(name)).collect();
        let first = columns.join(",");
        if element.flag("ignoreFirstLine") {
            self.all.remark(format!("The first line of {taken} has to be: {first}."));
        } else {
            self.all.remark(format!("Put a first line into {taken}: {first}."));
        }
        for (name, column) in names.into_iter().zip(columns).filter(|(name, _)| !name.is_empty()) {
            self.columns.insert(name.to_owned(), format!("{set}.{column}"));
        }
    }

    /// Sets the variables that elements beside the steps of a tree give.
    pub(super) fn settle(&mut self, elements: &[JmeterElement<'a>]) {
        for element in elements {
            match element.kind() {
                "CounterConfig" => self.counter(*element),
                "RandomVariableConfig" => self.random_variable(*element),
                "UserParameters" => self.user_parameters(*element),
                _ => {}
            }
        }
    }

    fn counter(&mut self, element: JmeterElement<'a>) {
        let name = element.text("CounterConfig.name").trim();
        if name.is_empty() || !self.used.contains(name) {
            return;
        }
        self.leave_out(element, "it counts by seq(), which begins and ends where knee has it");
        let value = ImportedText::value("seq()");
        self.set(vec![(Collector::variable(name), value)]);
    }

    fn random_variable(&mut self, element: JmeterElement<'a>) {
        let name = element.text("variableName").trim();
        if name.is_empty() {
            return;
        }
        let least = self.number::<i64>(element.text("minimumValue"));
        let most = self.number::<i64>(element.text("maximumValue"));
        let format = element.text("outputFormat").trim();
        let Some((least, most)) = least.zip(most).filter(|(least, most)| least <= most) else {
            self.leave_out(element, "its range is not known: its variable has no value");
            return;
        };
        if !format.is_empty() {
            self.leave_out(element, &format!("its format '{format}' is not applied"));
        }
        let value = ImportedText::value(format!("random({least},{most})"));
        self.set(vec![(Collector::variable(name), value)]);
    }

    /// Parameters: the users have them in turn, as here one of them is chosen.
    fn user_parameters(&mut self, element: JmeterElement<'a>) {
        let names: Vec<String> =
            element.texts("UserParameters.names").into_iter().map(Collector::variable).collect();
        let users = element.listed("UserParameters.thread_values");
        let mut choices = Vec::new();
        for user in users.iter().take(100) {
            let values = user.texts("");
            let mut pairs = Vec::new();
            for (name, value) in names.iter().zip(values) {
                pairs.push((name.clone(), self.filled(value, element)));
            }
            choices.push(pairs);
        }
        choices.retain(|pairs| !pairs.is_empty());
        self.set_what_is_needed();
        if choices.len() < 2 {
            choices.into_iter().for_each(|pairs| self.set(pairs));
            return;
        }
        self.leave_out(element, "its users come by chance, not by the numbers of threads");
        let steps = |pairs| (1, vec![ImportedStep::Set(pairs)]);
        self.all.push(ImportedStep::Choose(choices.into_iter().map(steps).collect()));
        names.iter().for_each(|name| self.all.know(name));
    }
}
