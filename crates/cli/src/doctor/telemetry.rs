//! Whether we send spans, and where to. Sends none.

use super::Finding;
use crate::setup::Sources;
use crate::telemetry::{TelemetrySetup, telemetry_setup};

const SUBJECT: &str = "telemetry";

/// `None` for users who did not turn it on.
pub(super) fn check(sources: &Sources) -> Option<Finding> {
    let content = match sources.config.telemetry.sends_content() {
        true => ", with prompts, arguments and results",
        false => ", without content",
    };
    Some(match telemetry_setup(sources) {
        Ok(TelemetrySetup::NotWanted) => return None,
        Ok(TelemetrySetup::Disabled) => Finding::ok(SUBJECT, "off: OTEL_SDK_DISABLED is set"),
        Ok(TelemetrySetup::Ready(collector)) => {
            Finding::ok(SUBJECT, format!("spans go to {}{content}", collector.shown()))
        }
        Err(why) => Finding::warn(SUBJECT, why, "correct [telemetry] in the configuration"),
    })
}
