//! The file: its tables, and how it is opened.

use knee_engine::input;
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The tables' version that this knee writes and reads, kept as `user_version`.
const VERSION: i64 = 1;

/// Tells the file from any other SQLite database: `knee` in ASCII, kept as `application_id`.
const APPLICATION: i64 = 0x6b6e_6565;

/// How long others that write at the same time are waited for, each time.
const PATIENCE: Duration = Duration::from_secs(3);

/// Time limit for opening the file while others write to it.
const PATIENCE_TO_OPEN: Duration = Duration::from_secs(6);

/// A run is written as it happens. `reports` holds what the trials that have ended lead to, and in
/// the end the whole; intervals of those trials are needless then. Ids are never given twice.
const TABLES: &str = "
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    command TEXT NOT NULL,
    started_at TEXT NOT NULL,      -- RFC 3339, in UTC
    target TEXT NOT NULL,          -- empty: the command has none
    seed TEXT NOT NULL,            -- a number beyond what an INTEGER holds
    spec TEXT NOT NULL,            -- JSON
    host TEXT NOT NULL,            -- JSON
    knee_version TEXT NOT NULL,
    report_schema TEXT NOT NULL,   -- of all that is JSON here
    pid INTEGER NOT NULL,
    pid_began INTEGER NOT NULL,
    pid_within TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'failed')),
    elapsed_ns INTEGER NOT NULL,   -- since it began, as last heard of
    ended INTEGER NOT NULL DEFAULT 0, -- trials
    running INTEGER,               -- the latest trial, from 0 on
    running_trial TEXT,            -- what it is, JSON
    verdict TEXT,
    interrupted INTEGER NOT NULL DEFAULT 0,
    answer TEXT,                   -- open: so far; failed: why
    result TEXT                    -- absent in files of the first versions
);
CREATE TABLE intervals (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    trial INTEGER NOT NULL,
    number INTEGER NOT NULL,
    interval TEXT NOT NULL,        -- JSON
    response TEXT,                 -- HdrHistogram V2 in base64, as JSON
    PRIMARY KEY (run, trial, number)
) WITHOUT ROWID;
CREATE TABLE reports (
    run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    document BLOB NOT NULL         -- JSON, zlib
);
CREATE TABLE baselines (
    name TEXT PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX baselines_of_run ON baselines (run);
";

/// Opens the file to write to it, and makes it where there is none; else what is wrong, in a few
/// words.
pub fn open_to_write(path: &Path) -> Result<Connection, String> {
    if path.exists() {
        // A pipe or a device would keep SQLite waiting.
        input::check_kind(path)?;
    }
    make_file(path).map_err(|e| e.to_string())?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(in_words)?;
    // Two that make the same file at once may each find the other in the way.
    let deadline = Instant::now() + PATIENCE_TO_OPEN;
    loop {
        match prepare(&mut connection) {
            Err(OpenError::Busy) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(trouble) => return Err(trouble.in_words()),
            Ok(()) => return Ok(connection),
        }
    }
}

/// Opens the file to read it; `None` where there is none.
pub fn open_to_read(path: &Path) -> Result<Option<Connection>, String> {
    if !path.exists() {
        return Ok(None);
    }
    input::check_kind(path)?;
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // What a killed process left behind is taken into the file, where that may be written.
    let both = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE);
    let mut connection = match both {
        Ok(connection) => connection,
        Err(_) => Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(in_words)?,
    };
    connection.busy_timeout(PATIENCE).map_err(in_words)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(in_words)?;
    let is_made = is_made(&mut connection).map_err(OpenError::in_words)?;
    Ok(is_made.then_some(connection))
}

/// Makes a change as a whole or not at all.
pub fn change<T>(
    connection: &mut Connection,
    change: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
) -> Result<T, String> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = transaction.map_err(in_words)?;
    let changed = change(&transaction).map_err(in_words)?;
    transaction.commit().map_err(in_words)?;
    Ok(changed)
}

const BUSY: &str = "others write to it all the time";

/// An error of SQLite in a few words.
pub fn in_words(error: Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => "is not a history of knee".to_string(),
        Some(ErrorCode::DatabaseCorrupt) => "is damaged".to_string(),
        Some(ErrorCode::DiskFull) => "the disk is full".to_string(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => BUSY.to_string(),
        Some(ErrorCode::ReadOnly) => "may not be written".to_string(),
        Some(ErrorCode::CannotOpen) => "cannot be opened".to_string(),
        Some(ErrorCode::ConstraintViolation) => {
            "the run was removed from it while it went on".to_string()
        }
        _ => error.to_string().replace('\n', " "),
    }
}

/// The file with its directory, for the eyes of the user alone: options may hold passwords.
fn make_file(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    options.open(path).map(drop)
}

enum OpenError {
    Busy,
    Other(String),
}

impl OpenError {
    fn in_words(self) -> String {
        match self {
            OpenError::Busy => BUSY.to_string(),
            OpenError::Other(line) => line,
        }
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> OpenError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Busy,
            _ => OpenError::Other(in_words(error)),
        }
    }
}

fn prepare(connection: &mut Connection) -> Result<(), OpenError> {
    connection.busy_timeout(PATIENCE)?;
    let is_new = !is_made(connection)?;
    if is_new {
        // Before anything else: it cannot be chosen later.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    // Readers and one writer do not wait for each other. Where the file system cannot do it, the
    // mode stays what it was, which is slower but as safe.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    // What was written outlives the process as soon as the kernel has it: a killed knee loses
    // nothing. Only a power failure may take the latest writes, never the file.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", 1 << 20)?;
    if is_new {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been first.
        if !has_tables(&transaction)? {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        transaction.commit()?;
    }
    if !has_result(connection)? {
        connection.execute_batch("ALTER TABLE runs ADD COLUMN result TEXT")?;
    }
    Ok(())
}

/// Whether runs have a result: not in the files of the first versions, which are read as they are.
pub fn has_result(connection: &Connection) -> Result<bool, Error> {
    let sql = "SELECT count(*) FROM pragma_table_info('runs') WHERE name = 'result'";
    let found: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(found > 0)
}

/// [`has_tables`], of a file that others may be creating at the same time.
fn is_made(connection: &mut Connection) -> Result<bool, OpenError> {
    has_tables(&connection.transaction()?)
}

/// Whether the tables are there. An error where it is another program's file, or a newer knee's.
/// In a transaction, so that all answers are of one state.
fn has_tables(transaction: &Transaction) -> Result<bool, OpenError> {
    let pragma = |name: &str| transaction.pragma_query_value(None, name, |row| row.get(0));
    let (version, application): (i64, i64) = (pragma("user_version")?, pragma("application_id")?);
    if application == APPLICATION {
        return match version {
            VERSION => Ok(true),
            newer => Err(OpenError::Other(format!(
                "is of another version of knee (schema {newer}; this one reads {VERSION})"
            ))),
        };
    }
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = transaction.query_row(tables, [], |row| row.get(0))?;
    match (application, version, tables) {
        (0, 0, 0) => Ok(false),
        _ => Err(OpenError::Other("is not a history of knee".to_string())),
    }
}
