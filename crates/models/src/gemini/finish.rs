//! Why the API says an answer ended, and what that means for the step.

use attache_core::chunk::FinishReason;

/// What a `finishReason` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GeminiFinish {
    /// The step ends this way; a `Stop` after calls becomes `ToolCalls`.
    Ends(FinishReason),
    /// The model tried to call a tool and the API could not read the call.
    UnreadableCall,
    /// The API could not read its model's answer; another attempt usually works.
    UnreadableAnswer,
    /// Our request was wrong, and would be wrong again.
    BadRequest,
    /// The answer has not ended.
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

/// Which tool an unreadable call meant. The API quotes such calls as Python, `print(default_api.NAME(…`; where
/// it does not, the call still needs a name.
pub(super) fn tool_meant(message: &str) -> &str {
    let name = message.split_once("default_api.").and_then(|(_, rest)| rest.split_once('('));
    let is_name = |name: &&str| {
        let fits = (1..=64).contains(&name.len());
        fits && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    name.map(|(name, _)| name).filter(is_name).unwrap_or("malformed_call")
}
