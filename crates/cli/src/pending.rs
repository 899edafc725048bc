#![allow(missing_docs, unused)]
pub fn assess(_t: &knee_core::measure::Trial) -> knee_core::report::TrialReport {
    todo!()
}
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold(String);
impl std::fmt::Display for Threshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl Threshold {
    pub fn crossed(&self, _r: &knee_core::report::Report) -> bool {
        false
    }
}
impl std::str::FromStr for Threshold {
    type Err = knee_core::spec::ParseError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Ok(Threshold(s.into()))
    }
}
