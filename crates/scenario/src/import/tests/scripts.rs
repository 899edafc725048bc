//! Scripts of k6 and plans of JMeter.

use super::{header, read, requests};
use crate::import::{ImportedStep, jmeter, k6};
use knee_load::time::Nanos;

pub(super) const K6: &str = r#"
import http from 'k6/http';
import { check, sleep, group } from "k6";

// A comment with http.get('http://no/')
export const options = {
  vus: 7, duration: '1m30s',
  thresholds: { http_req_duration: ['p(95)<500'] },
};
const BASE = __ENV.BASE || 'https://shop.test';
const params = { headers: { 'Content-Type': 'application/json' }, tags: { name: 'login' } };

export function setup() { http.get(`${BASE}/setup`); }

export default function () {
  const res = http.post(BASE + '/login', JSON.stringify({ name: "ann", n: 1.5, 'l': [true, null] }),
    params);
  check(res, { 'is 200': (r) => r.status === 200 });
  const token = res.json('token');
  http.get(`${BASE}/items?page=${page}`);
  group('items', function () {
    http.get(`${BASE}/items`, { headers: { Authorization: 'Bearer x' } });
    sleep(1.5);
  });
  for (let i = 0; i < 3; i++) {
    http.del(`${BASE}/items/1`);
  }
  http.post(`${BASE}/form`, { a: 'b c', n: 2 });
  http.batch([['GET', BASE]]);
  http.request('PURGE', BASE + '/cache');
  sleep(Math.random() * 3);
}
"#;

#[test]
fn literal_calls_of_k6_are_steps() {
    let imported = k6(K6.as_bytes()).unwrap();
    let all = requests(&imported);
    let told: Vec<String> = all.iter().map(|r| format!("{} {}", r.method, r.path)).collect();
    let expected = ["POST /login", "GET /items", "DELETE /items/1", "POST /form", "PURGE /cache"];
    assert_eq!(told, expected);
    assert_eq!(&*all[0].body, br#"{"name":"ann","n":1.5,"l":[true,null]}"#);
    assert_eq!(read(&imported).plan.requests[0].name, "login");
    assert_eq!(header(&all[1], "authorization"), Some("Bearer x"));
    assert_eq!(&*all[3].body, b"a=b+c&n=2");
    assert_eq!(imported.sessions[0].steps[2], ImportedStep::Think("1500ms".to_owned()));
    assert_eq!(imported.load.vusers, Some(7));
    assert_eq!(imported.load.duration, Some(Nanos::from_secs(90)));
    assert_eq!(
        imported.left_out,
        [
            "option thresholds: write 'fail_if'",
            "line 13: function setup",
            "line 18: check: write 'expect' into the step",
            "line 20: http.get: its URL is not literal",
            "line 25: a loop: its steps are done once",
            "line 29: http.batch",
            "line 31: sleep: its time is not literal; write 'think'",
        ]
    );
}

#[test]
fn loads_of_k6() {
    let of = |options: &str| {
        let script = format!("let options = {options};\nhttp.get('http://h/');");
        k6(script.as_bytes()).unwrap().load
    };
    let stages = of("{stages: [{duration: '10s', target: 5}, {duration: '1m', target: 20}]}");
    assert_eq!((stages.vusers, stages.duration), (Some(20), Some(Nanos::from_secs(70))));
    let rate = of("{scenarios: {a: {executor: 'constant-arrival-rate', rate: 90, timeUnit: '1m', \
                   duration: '30s', preAllocatedVUs: 5}}}");
    assert_eq!((rate.rate_per_s, rate.vusers), (Some(1.5), None));
    for options in ["f()", "{vus: -1, duration: 'soon'}", "{stages: 1}", "{scenarios: {a: 1}}"] {
        assert_eq!(of(options), crate::import::ImportedLoad::default(), "{options}");
    }
    assert!(k6(b"http.get(url)").is_err());
    // However it is nested, it ends.
    let deep = "http.get(".repeat(100_000);
    assert!(k6(deep.as_bytes()).is_err());
    // Nor do constants of constants take more and more room.
    let doubled = |n: usize| format!("const a{} = [a{n}, a{n}, 'x' + '{n}'];\n", n + 1);
    let script = "const a0 = ['x'];\n".to_owned() + &(0..200).map(doubled).collect::<String>();
    assert!(k6(script.as_bytes()).is_err());
    let deep = format!("const a = {}", "[".repeat(100_000));
    assert!(k6(deep.as_bytes()).is_err());
}

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
    assert_eq!(imported.target.literal(), Some("https://shop.test"));
    let all = requests(&imported);
    let told: Vec<String> = all.iter().map(|r| format!("{} {}", r.method, r.path)).collect();
    assert_eq!(told, ["GET /items?q=a%20b", "POST /items"]);
    assert_eq!(header(&all[0], "x-a"), Some("1"));
    assert_eq!(header(&all[1], "x-a"), None);
    assert_eq!(&*all[1].body, br#"{"t": "${token}"}"#);
    let pause = ImportedStep::Think("300ms".to_owned());
    let steps = &imported.sessions[0].steps;
    assert!(steps[0] == pause && steps[2] == pause);
    assert_eq!(imported.load.vusers, Some(12));
    assert_eq!(imported.load.duration, Some(Nanos::from_secs(60)));
    let stages: Vec<_> = imported.load.stages.iter().map(|s| (s.from, s.to)).collect();
    assert_eq!(stages, [(0.0, 12.0), (12.0, 12.0)]);
    assert_eq!(
        imported.left_out,
        [
            "the value of ${token} in 'Post': it is text here",
            "line 22: ThreadGroup 'Users': 5 loops: only its duration ends it",
        ]
    );
    for bad in ["", "<a/>", "<jmeterTestPlan/>", "<jmeterTestPlan"] {
        let refused = jmeter(bad.as_bytes()).unwrap_err().0;
        assert!(!refused.contains('\n'), "{refused}");
    }
    let doubled = |n: usize| {
        format!(
            "<elementProp elementType='Argument'><stringProp name='Argument.name'>a{}</stringProp>\
             <stringProp name='Argument.value'>${{a{n}}}${{a{n}}}x</stringProp></elementProp>",
            n + 1
        )
    };
    let doubled: String = (0..200).map(doubled).collect();
    let plan = "<jmeterTestPlan><hashTree><Arguments>".to_owned()
        + &doubled
        + "</Arguments></hashTree></jmeterTestPlan>";
    assert!(jmeter(plan.as_bytes()).is_err());
    let deep = format!("<jmeterTestPlan>{}", "<hashTree>".repeat(5000));
    assert!(jmeter(deep.as_bytes()).is_err());
}
