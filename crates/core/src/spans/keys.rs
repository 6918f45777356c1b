//! Names of spans and of their attributes. Those with `gen_ai.` and `error.` are OpenTelemetry's, and mean what
//! its conventions say; ours begin with `attache.`.

pub(crate) const SESSION_TURN: &str = "session.turn";
pub(crate) const SESSION_RUN: &str = "session.run";
pub(crate) const TOOL_CALL: &str = "tool.call";
pub(crate) const COMPACTION_RUN: &str = "compaction.run";
pub(crate) const PERMISSION_EVALUATE: &str = "permission.evaluate";

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(crate) const AGENT: &str = "gen_ai.agent.name";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(crate) const STREAM: &str = "gen_ai.request.stream";
pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// In seconds.
pub(crate) const FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
/// All input tokens, including those from a cache.
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
/// All output tokens, including thoughts.
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const ERROR_TYPE: &str = "error.type";

// Content.
pub(crate) const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub(crate) const PERMISSION_REASON: &str = "attache.permission.reason";

/// How a turn ended: `finished`, `step_limit`, `aborted` or `failed`.
pub(crate) const TURN_END: &str = "attache.turn.end";
/// How a run ended: like its turn, or `suspended` for a person.
pub(crate) const RUN_END: &str = "attache.run.end";
pub(crate) const COST: &str = "attache.cost.usd";
pub(crate) const PERMISSION_ACTION: &str = "attache.permission.action";
/// What decided: a rule, the approval level, a person, …
pub(crate) const PERMISSION_BY: &str = "attache.permission.by";
/// `summary` or `stubs`.
pub(crate) const COMPACTION_KIND: &str = "attache.compaction.kind";
/// `overflow` or `command`.
pub(crate) const COMPACTION_OCCASION: &str = "attache.compaction.occasion";
/// `made`, `nothing` or `failed`.
pub(crate) const COMPACTION_OUTCOME: &str = "attache.compaction.outcome";
pub(crate) const TOKENS_BEFORE: &str = "attache.compaction.tokens_before";
pub(crate) const TOKENS_AFTER: &str = "attache.compaction.tokens_after";
