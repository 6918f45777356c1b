//! Converts failures of the hub and ends of turns to JSON-RPC answers.

use agent_client_protocol_schema::v1::{PromptResponse, StopReason};
use attache_core::chunk::FinishReason;
use attache_core::hub::{HubError, TurnOutcome};
use attache_core::ids::SessionId;
use attache_core::turn::{FailureKind, TurnEnd};
use attache_rpc::ErrorObject;
use serde_json::{Map, json};

use crate::from_wire::MESSAGE_ID_KEY;

pub(super) fn error_object(error: &HubError) -> ErrorObject {
    match error {
        HubError::UnknownSession { id, .. } | HubError::Closed(id) => not_found(id, error.to_string()),
        HubError::Invalid(reason) => ErrorObject::invalid_params(reason).detailed(),
        HubError::RunningElsewhere(_) | HubError::Busy(_) => {
            ErrorObject::invalid_request(error.to_string()).detailed()
        }
        HubError::NoModel(_) | HubError::UnusableModel { .. } => {
            ErrorObject::auth_required(error.to_string())
        }
        HubError::Store(_) | HubError::Internal(_) => ErrorObject::internal(error.to_string()),
    }
}

/// This connection has not opened the session, or it does not exist.
pub(super) fn unknown_session(id: &SessionId) -> ErrorObject {
    not_found(id, format!("there is no open session {id}; load or resume it first"))
}

fn not_found(id: &SessionId, message: String) -> ErrorObject {
    ErrorObject::resource_not_found(message, json!({ "sessionId": id }))
}

/// The answer to a prompt.
pub(super) fn prompt_answer(outcome: &TurnOutcome) -> Result<PromptResponse, ErrorObject> {
    let stop_reason = stop_reason(&outcome.end)?;
    let meta = Map::from_iter([(MESSAGE_ID_KEY.to_owned(), json!(outcome.message_id))]);
    Ok(PromptResponse::new(stop_reason).meta(meta))
}

fn stop_reason(end: &TurnEnd) -> Result<StopReason, ErrorObject> {
    match end {
        TurnEnd::Finished(FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other) => {
            Ok(StopReason::EndTurn)
        }
        TurnEnd::Finished(FinishReason::Length) => Ok(StopReason::MaxTokens),
        TurnEnd::Finished(FinishReason::ContentFilter) => Ok(StopReason::Refusal),
        TurnEnd::Finished(FinishReason::Error) => {
            Err(ErrorObject::internal("the model ended its answer with an error"))
        }
        TurnEnd::StepLimit => Ok(StopReason::MaxTurnRequests),
        TurnEnd::Aborted => Ok(StopReason::Cancelled),
        TurnEnd::Failed { kind, message, details } => {
            let error = match kind {
                FailureKind::Auth => ErrorObject::auth_required(message),
                FailureKind::Model | FailureKind::Store | FailureKind::Internal => {
                    ErrorObject::internal(message)
                }
            };
            Err(match details {
                // Behind the message: clients exist that show nothing else of an error.
                Some(details) => {
                    let details = format!("{}\n\n{details}", error.message);
                    error.with_data(json!({ "details": details }))
                }
                None => error,
            })
        }
    }
}
