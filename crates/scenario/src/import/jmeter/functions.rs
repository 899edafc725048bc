//! What variables and functions of JMeter are in a scenario.

use super::JmeterReader;
use super::element::JmeterElement;
use super::expression::{JmeterPart, parts, written};
use crate::import::ImportedText;
use crate::import::collect::Collector;
use crate::names::is_name;

/// The longest text with variables in their places.
const TEXT_MAX: usize = 1 << 20;

impl<'a> JmeterReader<'a> {
    /// A property as a text of the scenario. What is not known stays as it is, and is named.
    pub(super) fn filled(&mut self, text: &str, of: JmeterElement<'a>) -> ImportedText {
        let (filled, unknown) = self.resolved(text);
        for what in unknown {
            self.leave_out(of, &format!("nothing here sets {what}: it is sent as this text"));
        }
        filled
    }

    /// A text, and what in it is not known.
    pub(super) fn resolved(&mut self, text: &str) -> (ImportedText, Vec<String>) {
        self.resolved_parts(&parts(text))
    }

    /// The same of parts.
    pub(super) fn resolved_parts(&mut self, parts: &[JmeterPart]) -> (ImportedText, Vec<String>) {
        let (mut text, mut unknown, mut bytes) = (ImportedText::default(), Vec::new(), 0);
        for part in parts {
            let known = match part {
                JmeterPart::Text(plain) => Some(plain.as_str().into()),
                JmeterPart::Variable(name) => self.variable_of(name),
                JmeterPart::Call(name, arguments) => self.call(name, arguments),
            };
            let piece = known.unwrap_or_else(|| {
                let plain = written(std::slice::from_ref(part));
                unknown.push(plain.clone());
                plain.into()
            });
            bytes += piece.template().len();
            if bytes > TEXT_MAX {
                unknown.push("a text of more than 1 MiB".to_owned());
                break;
            }
            text.append(&piece);
        }
        (text, unknown)
    }

    /// A text that is the same in each session.
    pub(super) fn constant(&mut self, text: &str) -> Option<String> {
        let (text, unknown) = self.resolved(text.trim());
        text.literal().filter(|_| unknown.is_empty()).map(|text| text.trim().to_owned())
    }

    /// A number that is the same in each session.
    pub(super) fn number<T: std::str::FromStr>(&mut self, text: &str) -> Option<T> {
        self.constant(text)?.parse().ok()
    }

    fn variable_of(&mut self, name: &[JmeterPart]) -> Option<ImportedText> {
        let (name, unknown) = self.resolved_parts(name);
        let name = name.literal().filter(|_| unknown.is_empty())?.trim().to_owned();
        self.variable(&name)
    }

    /// The value of a variable: what a step has set, a column of a record, or what the plan says.
    pub(super) fn variable(&mut self, name: &str) -> Option<ImportedText> {
        let own = Collector::variable(name);
        let is_before = self.before.iter().any(|(before, _)| *before == own);
        if is_before || self.all.is_known(&own) {
            return Some(ImportedText::value(own));
        }
        if let Some(column) = self.columns.get(name).filter(|column| self.all.is_known(column)) {
            return Some(ImportedText::value(column.as_str()));
        }
        if let Some(value) = self.variables.get(name) {
            return Some(value.clone());
        }
        let set = self.nameless_set.as_ref().filter(|_| is_name(name))?;
        let column = format!("{set}.{name}");
        let is_known = self.all.is_known(&column);
        if is_known {
            self.all.remark(format!("Nothing else sets {name}: it is a column of {set}."));
        }
        is_known.then(|| ImportedText::value(column))
    }

    /// The value of a call; `None` if a scenario has no such value.
    fn call(&mut self, name: &str, arguments: &[Vec<JmeterPart>]) -> Option<ImportedText> {
        let texts: Vec<(ImportedText, Vec<String>)> =
            arguments.iter().map(|one| self.resolved_parts(one)).collect();
        let text = |at: usize| texts.get(at).map(|(text, _)| text.clone()).unwrap_or_default();
        let literal = |at: usize| -> Option<String> {
            let (text, unknown) = texts.get(at)?;
            text.literal().filter(|_| unknown.is_empty()).map(|text| text.trim().to_owned())
        };
        // The variable that has the value too.
        let variable_at = match name {
            "__Random" | "__RandomString" => Some(2),
            "__time" | "__counter" => Some(1),
            _ => None,
        };
        let value = match name {
            "__P" => self.property_value(&literal(0)?, literal(1)),
            "__property" => self.property_value(&literal(0)?, literal(2)),
            "__env" => Some(ImportedText::value(format!("env({})", literal(0)?))),
            "__V" | "__evalVar" => {
                let (name, default) = (literal(0)?, literal(1));
                self.variable(&name).or_else(|| default.map(ImportedText::from))
            }
            "__eval" => Some(text(0)),
            "__Random" => {
                let whole = |at| literal(at).and_then(|text| text.parse::<i64>().ok());
                let (least, most) = (whole(0)?, whole(1)?);
                (least <= most).then(|| ImportedText::value(format!("random({least},{most})")))
            }
            "__RandomString" => random_digits(&literal(0)?, &literal(1)?),
            "__UUID" => Some(ImportedText::value("uuid()")),
            "__time" => Some(self.time(&literal(0).unwrap_or_default())),
            "__counter" => {
                if literal(0).as_deref() != Some("FALSE") {
                    self.remark_numbers();
                }
                Some(ImportedText::value("seq()"))
            }
            "__threadNum" => {
                self.remark_numbers();
                let is_set = self.all.is_known("threadNum");
                is_set.then(|| ImportedText::value("threadNum"))
            }
            "__threadGroupName" => Some(self.group.as_str().into()),
            "__TestPlanName" => Some(self.plan_name.as_str().into()),
            "__urlencode" => ImportedText::call("urlencode", &[&text(0)]),
            "__base64Encode" => ImportedText::call("base64", &[&text(0)]),
            "__lowercase" => literal(0).map(|text| text.to_lowercase().into()),
            "__uppercase" => literal(0).map(|text| text.to_uppercase().into()),
            "__intSum" | "__longSum" => {
                let sum = (0..texts.len()).filter_map(literal).map(|one| one.parse::<i64>().ok());
                sum.sum::<Option<i64>>().map(|sum| sum.to_string().into())
            }
            "__groovy" | "__BeanShell" | "__javaScript" => self.of_script(&literal(0)?),
            _ => None,
        }?;
        if texts.iter().any(|(_, unknown)| !unknown.is_empty()) {
            return None;
        }
        let variable = variable_at.and_then(literal).filter(|name| !name.is_empty());
        Some(match variable {
            Some(name) => self.set_before(&name, value),
            None => value,
        })
    }

    /// A property that the command line of JMeter gives.
    fn property_value(&mut self, name: &str, default: Option<String>) -> Option<ImportedText> {
        let from_setup = self.properties.get(name).map(|variable| format!("setup.{variable}"));
        if let Some(variable) = from_setup.filter(|variable| self.all.is_known(variable)) {
            return Some(ImportedText::value(variable));
        }
        match default {
            Some(default) => {
                self.all.remark(format!("The property {name} has its default: '{default}'."));
                Some(default.into())
            }
            None if is_name(name) => {
                let variable = format!("env({})", name.replace('-', "_"));
                self.all.remark(format!("The property {name} is ${{{variable}}}."));
                Some(ImportedText::value(variable))
            }
            None => None,
        }
    }

    fn remark_numbers(&mut self) {
        self.all.remark(
            "Numbers of threads and counters are those of seq(), which no other session has.",
        );
    }

    /// The time of day, in a format that a scenario has.
    fn time(&mut self, format: &str) -> ImportedText {
        let is_digits = format.chars().all(|c| c.is_alphabetic());
        let own = match format {
            "" => "unix_ms",
            _ if is_digits || format == "/1000" => "unix_s",
            _ => "rfc3339",
        };
        if !matches!(format, "" | "/1000") && !format.starts_with("yyyy-MM-dd'T'HH:mm:ss") {
            self.all.leave_out(format!("the time as '{format}': it is now({own}) here"));
        }
        ImportedText::value(format!("now({own})"))
    }

    /// Sets a variable before the step that is read; the variable.
    fn set_before(&mut self, name: &str, value: ImportedText) -> ImportedText {
        let variable = Collector::variable(name);
        self.before.push((variable.clone(), value));
        ImportedText::value(variable)
    }

    /// The value of a script, where it is one call.
    fn of_script(&mut self, script: &str) -> Option<ImportedText> {
        let script = script.trim().trim_end_matches(';');
        let argument = |call: &str| {
            let rest = script.strip_prefix(call)?.trim_start().strip_prefix('(')?;
            let text = rest.strip_suffix(')')?.trim();
            let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
            let text = text.strip_prefix(quote)?.strip_suffix(quote)?;
            (!text.contains(quote)).then(|| text.to_owned())
        };
        if let Some(name) = argument("vars.get") {
            return self.variable(&name);
        }
        if let Some(name) = argument("props.get") {
            return self.property_value(&name, None);
        }
        let plain = script.strip_suffix(".toString()").unwrap_or(script);
        match script {
            "System.currentTimeMillis()" | "new Date().getTime()" => {
                Some(ImportedText::value("now(unix_ms)"))
            }
            _ if plain.ends_with("UUID.randomUUID()") => Some(ImportedText::value("uuid()")),
            _ => script.parse::<f64>().ok().map(|_| script.into()),
        }
    }
}

/// A text of a number of digits; each may be any.
fn random_digits(length: &str, letters: &str) -> Option<ImportedText> {
    let length: u32 = length.parse().ok().filter(|length| (1..=15).contains(length))?;
    let is_digits = letters.bytes().all(|b| b.is_ascii_digit());
    let is_digits = is_digits && (b'0'..=b'9').all(|digit| letters.as_bytes().contains(&digit));
    let least = 10_u64.pow(length - 1);
    is_digits.then(|| ImportedText::value(format!("random({least},{})", least * 10 - 1)))
}

/// The same text whose values are pieces of their place: JMeter encodes none of them.
pub(super) fn unencoded(text: &ImportedText) -> ImportedText {
    text.map_values(
        |value| {
            if is_plain_value(value) { value.to_owned() } else { format!("raw({value})") }
        },
    )
}

/// Whether a value has no characters that are encoded anywhere.
fn is_plain_value(value: &str) -> bool {
    let calls = ["random(", "uuid(", "now(unix", "seq(", "raw(", "urlencode("];
    value == "threadNum" || calls.iter().any(|call| value.starts_with(call))
}
