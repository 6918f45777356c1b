//! Why the API says an answer ended, and what that means for the step.

use attache_core::chunk::FinishReason;

/// What a `finishReason` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GeminiFinish {
    /// The step ends so; a `Stop` after calls is `ToolCalls`.
    Ends(FinishReason),
    /// The model tried to call a tool and the API could not read the call.
    UnreadableCall,
    /// The API could not read its own model's answer; the next try usually goes well.
    UnreadableAnswer,
    /// Our request was wrong; the same request would be wrong again.
    BadRequest,
    /// Not an end at all.
    GoesOn,
}

impl GeminiFinish {
    pub(super) fn of(reason: &str) -> Self {
        match reason {
            "STOP" => Self::Ends(FinishReason::Stop),
            "MAX_TOKENS" => Self::Ends(FinishReason::Length),
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "IMAGE_SAFETY"
            | "IMAGE_RECITATION"
            | "IMAGE_PROHIBITED_CONTENT" => Self::Ends(FinishReason::ContentFilter),
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => Self::UnreadableCall,
            "MALFORMED_RESPONSE" => Self::UnreadableAnswer,
            "MISSING_THOUGHT_SIGNATURE" => Self::BadRequest,
            "" | "FINISH_REASON_UNSPECIFIED" => Self::GoesOn,
            "OTHER" => Self::Ends(FinishReason::Other),
            unknown => {
                tracing::debug!(reason = unknown, "an answer ended for a reason this version does not know");
                Self::Ends(FinishReason::Other)
            }
        }
    }
}

/// The tool a call that could not be read was meant for. The API quotes such calls as Python,
/// `print(default_api.NAME(…`; where it does not, the call still needs a name.
pub(super) fn tool_meant(message: &str) -> &str {
    let name = message.split_once("default_api.").and_then(|(_, rest)| rest.split_once('('));
    let is_name = |name: &&str| {
        let fits = (1..=64).contains(&name.len());
        fits && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    name.map(|(name, _)| name).filter(is_name).unwrap_or("malformed_call")
}
