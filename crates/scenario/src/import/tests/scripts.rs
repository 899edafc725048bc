//! Plans of JMeter.

use super::{header, requests};
use crate::import::jmeter;

pub(super) const JMETER: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2">
  <hashTree>
    <TestPlan testname="Plan" enabled="true">
      <elementProp name="TestPlan.user_defined_variables" elementType="Arguments"/>
    </TestPlan>
    <hashTree>
      <Arguments testname="Variables">
        <collectionProp name="Arguments.arguments">
          <elementProp name="HOST" elementType="Argument">
            <stringProp name="Argument.name">HOST</stringProp>
            <stringProp name="Argument.value">shop.test</stringProp>
          </elementProp>
        </collectionProp>
      </Arguments>
      <hashTree/>
      <ConfigTestElement testname="Defaults">
        <stringProp name="HTTPSampler.domain">${HOST}</stringProp>
        <stringProp name="HTTPSampler.protocol">https</stringProp>
      </ConfigTestElement>
      <hashTree/>
      <ThreadGroup testname="Users" enabled="true">
        <elementProp name="ThreadGroup.main_controller" elementType="LoopController">
          <stringProp name="LoopController.loops">5</stringProp>
        </elementProp>
        <stringProp name="ThreadGroup.num_threads">12</stringProp>
        <stringProp name="ThreadGroup.ramp_time">10</stringProp>
        <boolProp name="ThreadGroup.scheduler">true</boolProp>
        <stringProp name="ThreadGroup.duration">60</stringProp>
      </ThreadGroup>
      <hashTree>
        <HTTPSamplerProxy testname="List" enabled="true">
          <elementProp name="HTTPsampler.Arguments" elementType="Arguments">
            <collectionProp name="Arguments.arguments">
              <elementProp name="q" elementType="HTTPArgument">
                <boolProp name="HTTPArgument.always_encode">true</boolProp>
                <stringProp name="Argument.value">a b</stringProp>
                <stringProp name="Argument.name">q</stringProp>
              </elementProp>
            </collectionProp>
          </elementProp>
          <stringProp name="HTTPSampler.path">/items</stringProp>
          <stringProp name="HTTPSampler.method">GET</stringProp>
        </HTTPSamplerProxy>
        <hashTree>
          <HeaderManager testname="Headers">
            <collectionProp name="HeaderManager.headers">
              <elementProp name="" elementType="Header">
                <stringProp name="Header.name">X-A</stringProp>
                <stringProp name="Header.value">1</stringProp>
              </elementProp>
            </collectionProp>
          </HeaderManager>
          <hashTree/>
          <ResponseAssertion testname="Is 200"/>
          <hashTree/>
        </hashTree>
        <HTTPSamplerProxy testname="Post" enabled="true">
          <boolProp name="HTTPSampler.postBodyRaw">true</boolProp>
          <elementProp name="HTTPsampler.Arguments" elementType="Arguments">
            <collectionProp name="Arguments.arguments">
              <elementProp name="" elementType="HTTPArgument">
                <stringProp name="Argument.value">{"t": "${token}"}</stringProp>
              </elementProp>
            </collectionProp>
          </elementProp>
          <stringProp name="HTTPSampler.path">/items</stringProp>
          <stringProp name="HTTPSampler.method">POST</stringProp>
        </HTTPSamplerProxy>
        <hashTree/>
        <HTTPSamplerProxy testname="Off" enabled="false">
          <stringProp name="HTTPSampler.path">/off</stringProp>
        </HTTPSamplerProxy>
        <hashTree/>
        <ConstantTimer testname="Pause">
          <stringProp name="ConstantTimer.delay">300</stringProp>
        </ConstantTimer>
        <hashTree/>
      </hashTree>
    </hashTree>
  </hashTree>
</jmeterTestPlan>
"#;

#[test]
fn samplers_of_jmeter_are_steps() {
    let imported = jmeter(JMETER.as_bytes()).unwrap();
    assert_eq!(imported.targets[0].literal(), Some("https://shop.test"));
    let all = requests(&imported);
    let told: Vec<String> = all.iter().map(|r| format!("{} {}", r.method, r.path)).collect();
    assert_eq!(told, ["GET /items?q=a+b", "POST /items"]);
    assert_eq!(header(&all[0], "x-a"), Some("1"));
    assert_eq!(header(&all[1], "x-a"), None);
    assert_eq!(&*all[1].body, br#"{"t": "${token}"}"#);
    let yaml = imported.to_yaml("a plan");
    assert!(yaml.contains("steps:\n      - think: 300ms\n      - get: /items?q=a+b\n"), "{yaml}");
    assert_eq!(yaml.matches("- think: 300ms\n").count(), 2, "{yaml}");
    assert!(yaml.contains("    - {ramp: 0 -> 12 users, for: 10s}\n"), "{yaml}");
    assert!(yaml.contains("    - {hold: 12 users, for: 50s}\n"), "{yaml}");
    assert_eq!(
        imported.left_out,
        [
            "line 58: HTTPSamplerProxy 'Post': nothing here sets ${token}: it is sent as this text",
            "line 22: ThreadGroup 'Users': its threads make 5 passes; here a duration or -n ends it",
            "elements that are disabled in the plan: 1",
        ]
    );
    for bad in ["", "<a/>", "<jmeterTestPlan/>", "<jmeterTestPlan"] {
        let refused = jmeter(bad.as_bytes()).unwrap_err().0;
        assert!(!refused.contains('\n'), "{refused}");
    }
    let doubled = |n: usize| {
        format!(
            "<elementProp name='x'><stringProp name='Argument.name'>a{}</stringProp>\
             <stringProp name='Argument.value'>${{a{n}}}${{a{n}}}x</stringProp></elementProp>",
            n + 1
        )
    };
    let doubled: String = (0..200).map(doubled).collect();
    let plan = "<jmeterTestPlan><hashTree><TestPlan/><hashTree><Arguments>\
                <collectionProp name='Arguments.arguments'>"
        .to_owned()
        + &doubled
        + "</collectionProp></Arguments></hashTree></hashTree></jmeterTestPlan>";
    assert!(jmeter(plan.as_bytes()).is_err());
    let deep = format!("<jmeterTestPlan>{}", "<hashTree>".repeat(5000));
    assert!(jmeter(deep.as_bytes()).is_err());
}
