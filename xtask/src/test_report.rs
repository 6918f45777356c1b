//! Names the slowest tests of a run and those that passed only when they were run again, from the report that
//! nextest writes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// One test and its time in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TestTime {
    name: String,
    seconds: f64,
}

/// A line for each of the slowest tests, the slowest first, and one for each that first failed.
pub(crate) fn told(report: &Path, count: usize) -> Result<String> {
    let text = fs::read_to_string(report).with_context(|| format!("cannot read {}", report.display()))?;
    let slowest = slowest(&text, count);
    let slowest: String =
        slowest.iter().map(|test| format!("{:>8.1} s  {}\n", test.seconds, test.name)).collect();
    let unsteady: String = unsteady(&text).iter().map(|name| format!("  {name}\n")).collect();
    Ok(match unsteady.is_empty() {
        true => format!("the slowest tests:\n{slowest}"),
        false => {
            format!("the slowest tests:\n{slowest}passed only when run again, find out why:\n{unsteady}")
        }
    })
}

/// Each failed and then passed: a race in the test or in what it tests.
fn unsteady(report: &str) -> Vec<String> {
    let cases = report.split("<testcase ").skip(1);
    cases.filter(|case| case.contains("<flakyFailure")).filter_map(name).collect()
}

fn name(tag: &str) -> Option<String> {
    Some(format!("{} {}", attribute(tag, "classname")?, attribute(tag, "name")?))
}

fn slowest(report: &str, count: usize) -> Vec<TestTime> {
    let tags = report.split("<testcase ").skip(1).filter_map(|rest| rest.split('>').next());
    let mut times: Vec<TestTime> = tags.filter_map(test_time).collect();
    times.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    times.truncate(count);
    times
}

fn test_time(tag: &str) -> Option<TestTime> {
    Some(TestTime { name: name(tag)?, seconds: attribute(tag, "time")?.parse().ok()? })
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let begin = format!("{name}=\"");
    let at = tag.match_indices(&begin).find(|(at, _)| *at == 0 || tag[..*at].ends_with(' '))?.0;
    tag[at + begin.len()..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<testsuite name="tools" tests="3" time="9.0">
        <testcase name="a::fast" classname="tools" timestamp="x" time="0.010">
        </testcase>
        <testcase name="a::slow" classname="tools" timestamp="x" time="12.500"></testcase>
        <testcase name="b" classname="core::session" timestamp="x" time="3.000"/>
    </testsuite>"#;

    #[test]
    fn what_passed_only_when_run_again_is_named() {
        assert_eq!(unsteady(REPORT), [] as [&str; 0]);
        let again = REPORT.replace(
            r#"time="12.500">"#,
            r#"time="12.500"><flakyFailure timestamp="x" message="m">it said 1 &lt; 2</flakyFailure>"#,
        );
        assert_eq!(unsteady(&again), ["tools a::slow"]);
    }

    #[test]
    fn the_slowest_come_first_and_no_more_than_asked_for() {
        let names: Vec<String> = slowest(REPORT, 2).into_iter().map(|test| test.name).collect();
        assert_eq!(names, ["tools a::slow", "core::session b"]);
        assert_eq!(slowest(REPORT, 9).len(), 3);
        assert_eq!(slowest("", 9), []);
    }
}
