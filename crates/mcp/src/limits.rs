//! Every size and time this crate holds itself to, with its reason.

use std::time::Duration;

/// Longest message of a server: a picture of 6 MB in base64 fits. What is longer is skipped.
pub const MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// Requests of a server that wait for us at once; each is small, and none needs more.
pub(crate) const SERVER_REQUESTS: usize = 32;

/// Messages of an HTTP server that wait to be read: with the longest ones still bounded.
pub(crate) const HTTP_MESSAGES: usize = 4;

/// Posts to one HTTP server under way at once.
pub(crate) const HTTP_POSTS: usize = 16;

/// How long an address may take to accept us.
pub(crate) const HTTP_CONNECT: Duration = Duration::from_secs(15);

/// How long the next message waits for a notification to be taken.
pub(crate) const HTTP_NOTICE: Duration = Duration::from_secs(5);

/// Bytes that are read of an error answer.
pub(crate) const HTTP_ERROR_BYTES: usize = 2 * 1024;

/// Redirects within one server; more is a loop.
pub(crate) const HTTP_REDIRECTS: usize = 5;

/// How often the rest of an answer is asked for that was cut off.
pub(crate) const HTTP_RESUMES: usize = 3;

/// Before that.
pub(crate) const HTTP_RESUME_PAUSE: Duration = Duration::from_millis(500);

/// Arguments of one tool that are sent as headers, too.
pub(crate) const HEADER_ARGUMENTS: usize = 32;

/// An error of a server as JSON; the list of revisions that it speaks may be in it.
pub(crate) const HTTP_ERROR_MESSAGE_BYTES: usize = 64 * 1024;

/// Between two tries to listen to a server that hung up.
pub(crate) const LISTEN_AGAIN: Duration = Duration::from_secs(5);

/// Tools of one server: ten times what the largest ones have. Further ones are left out, with a notice.
pub(crate) const SERVER_TOOLS: usize = 5_000;

/// Pages of one list; a server that never ends its list is cut here.
pub(crate) const LIST_PAGES: usize = 500;

/// All schemas of one server together, as text.
pub(crate) const SCHEMAS_BYTES: usize = 4 * 1024 * 1024;

/// One schema: more would take a good part of a model's window. The tool is offered without it.
pub(crate) const SCHEMA_BYTES: usize = 32 * 1024;

/// Steps of one validation: a schema that refers to itself ends here, and the value passes.
pub(crate) const SCHEMA_STEPS: usize = 20_000;

/// How deep schemas are followed into each other.
pub(crate) const SCHEMA_DEPTH: usize = 64;

/// What every provider takes as a name.
pub(crate) const NAME_CHARACTERS: usize = 64;

/// Characters of a description, which is part of every request.
pub(crate) const DESCRIPTION_CHARACTERS: usize = 200;

/// Characters of a title, as clients show it.
pub(crate) const TITLE_CHARACTERS: usize = 80;

/// What a model gets of a result; the rest is in a file. The same as of a command.
pub(crate) const RESULT_BYTES: usize = 16 * 1024;

/// Of that, the beginning; the end says more often what came of it.
pub(crate) const RESULT_HEAD_BYTES: usize = 4 * 1024;

/// Resources that are listed at once; more than that is not read.
pub(crate) const LISTED_RESOURCES: usize = 200;

/// Pieces of one result that are looked at.
pub(crate) const RESULT_ITEMS: usize = 200;

/// Progress lines of a running call.
pub(crate) const PROGRESS_LINES: usize = 20;

/// Between two looks of a client at it: a server may say more than anybody reads.
pub(crate) const PROGRESS_PAUSE: Duration = Duration::from_millis(100);

/// Characters of one progress line.
pub(crate) const PROGRESS_CHARACTERS: usize = 200;

/// Characters of a server's question to the user.
pub(crate) const QUESTION_CHARACTERS: usize = 1_000;

/// Questions to the user in one call; whoever wants more than that nags.
pub(crate) const QUESTIONS: usize = 20;

/// Fields of one form: what a person fills in the middle of something else.
pub(crate) const FORM_FIELDS: usize = 50;

/// How long a server that refused the hello may take to say what it has: an older one may say nothing at all
/// to what it does not know.
pub(crate) const DISCOVER_TIME: Duration = Duration::from_secs(10);

/// How often a server may want something before it answers one request, and how much at once.
pub(crate) const INPUT_ROUNDS: usize = 10;
pub(crate) const INPUTS: usize = 16;

/// What one server's tools cost a session over its whole life, those that it has renamed or changed included: a
/// server with the most tools and the largest schemas can change all of them a few times.
pub(crate) const TAKEN_IN_BYTES: usize = 4 * SCHEMAS_BYTES;

/// One tool without its schema and description.
pub(crate) const TOOL_BYTES: usize = 512;

/// However often a server says that it is still at it.
pub(crate) const CALL_TIME: Duration = Duration::from_secs(60 * 60);

/// What is kept of what a server prints beside its messages: enough to say why it ended.
pub(crate) const ERRORS_BYTES: usize = 2 * 1024;

/// Before each new try.
pub(crate) const BACKOFF: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(60),
];

/// Tries in a row that came to nothing; then it is left alone until its session is opened again.
pub(crate) const TRIES: usize = 10;

/// A server that was there for as long is not one that ends at once.
pub(crate) const STEADY: Duration = Duration::from_secs(60);

/// Between the news that a list has changed and the question for it: changes come in bursts.
pub(crate) const LIST_PAUSE: Duration = Duration::from_millis(100);

/// Files of a directory that are looked at for a program with a similar name.
pub(crate) const PROGRAM_NAMES: usize = 5_000;

/// How long a server that is no longer needed is waited for, before the wait is left to its guard.
pub(crate) const END_TIME: Duration = Duration::from_secs(3);

/// Prompts of one server: as many as a menu of commands can be searched in.
pub(crate) const SERVER_PROMPTS: usize = 100;

/// Arguments of one prompt; more is not typed.
pub(crate) const PROMPT_ARGUMENTS: usize = 16;

/// A name of a prompt or of an argument, which is shown in a menu.
pub(crate) const PROMPT_NAME_BYTES: usize = 128;

/// Pictures that one prompt brings: each costs as much as a page.
pub(crate) const PROMPT_PICTURES: usize = 8;

/// Values that are suggested for an argument.
pub(crate) const SUGGESTIONS: usize = 20;

/// Resources whose changes one server is asked to tell.
pub(crate) const SUBSCRIPTIONS: usize = 100;

/// Changed resources that are named in one message to the model.
pub(crate) const NAMED_RESOURCES: usize = 10;

/// Addresses of one server that its user was offered and that are not done.
pub(crate) const OPEN_ADDRESSES: usize = 32;

/// Longest address that a user is offered; browsers take no longer ones.
pub(crate) const ADDRESS_BYTES: usize = 2_000;

/// Answers of a model that the servers of one session get.
pub(crate) const SAMPLING_CALLS: usize = 20;

/// Tokens of all of them together, questions included: the price of a few turns of a small model.
pub(crate) const SAMPLING_TOKENS: u64 = 50_000;

/// Tokens of one answer at most, whatever a server asks for.
pub(crate) const SAMPLING_ANSWER_TOKENS: u64 = 4_000;

/// One question of a server to a model: a person has to read it before it is sent.
pub(crate) const SAMPLING_BYTES: usize = 16 * 1024;

/// Messages in it.
pub(crate) const SAMPLING_MESSAGES: usize = 20;

/// How often a task is asked how far it is, where it says nothing of it.
pub(crate) const TASK_POLL: Duration = Duration::from_secs(1);

/// Whatever it says: a tenth of a second is soon enough for a person, and a minute too late.
pub(crate) const TASK_POLLS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(10);

/// Bytes of a `WWW-Authenticate` header: a handful of words and an address.
pub(crate) const CHALLENGE_BYTES: usize = 8 * 1024;

/// Parameters and schemes of such a header.
pub(crate) const CHALLENGE_PARAMETERS: usize = 64;

/// Scopes of one login; those of the largest services are a few dozen.
pub(crate) const SCOPES: usize = 100;

/// One answer while a login is made or renewed. Metadata of large services are 10 KiB.
pub(crate) const OAUTH_BYTES: usize = 256 * 1024;

/// How long one such answer may take.
pub(crate) const OAUTH_ANSWER: Duration = Duration::from_secs(20);

/// Redirects within one place while a login is made.
pub(crate) const OAUTH_REDIRECTS: usize = 3;

/// Authorization servers of one server that are looked at.
pub(crate) const AUTHORIZATION_SERVERS: usize = 5;

/// One token: it goes into a header, and servers refuse headers above 16 KiB or less.
pub(crate) const TOKEN_BYTES: usize = 16 * 1024;

/// A token that is said to last longer is asked for again after this, so that no sum overflows.
pub(crate) const TOKEN_LIFE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long before its end a token is renewed: longer than a request is under way.
pub(crate) const RENEW_BEFORE: Duration = Duration::from_secs(30);

/// How often a server that needs a login checks whether there is one now; a check costs one `stat`.
pub(crate) const LOGIN_LOOK: Duration = Duration::from_secs(1);

/// How long a person may take to log in: to find a password, and a second device.
pub(crate) const LOGIN_TIME: Duration = Duration::from_secs(10 * 60);

/// Bytes of a browser's redirect: one line with an answer, and headers.
pub(crate) const REDIRECT_BYTES: usize = 32 * 1024;

/// How long it may take to send that, and to take our page.
pub(crate) const REDIRECT_TIME: Duration = Duration::from_secs(10);

/// Connections of browsers at once; they open some in advance.
pub(crate) const REDIRECT_CONNECTIONS: usize = 16;

/// Answers that are not the one that is waited for, before the wait ends.
pub(crate) const REDIRECT_STRAYS: usize = 100;
