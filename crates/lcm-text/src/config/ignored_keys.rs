//! Keys of the reference system that no part of this system follows, each with its reason.
//!
//! Input: a key in camel case. Output: the reason, one line for the report.

/// Why a key has no effect.
pub(super) enum IgnoredKey {
    /// The reference system has the key without effect, too.
    Deprecated(&'static str),
    /// The key concerns something that neither the engine nor a host has.
    NotFollowed(&'static str),
}

const CACHE: &str = "no effect: `context_threshold_permille` alone decides when compaction is due";
const CHUNK: &str = "no effect: `leaf_chunk_tokens_max` alone bounds a leaf";
const ROTATION: &str = "not followed: no host rewrites or rotates session files";
const LOG: &str = "not followed: the log belongs to the program; none is written by itself";

/// Names of variables are here beside keys: the reference system has variables that are not named
/// for their key.
const IGNORED_KEYS: [(&str, IgnoredKey); 33] = [
    (
        "agentCompactionToolEnabled",
        IgnoredKey::NotFollowed("not followed: no tool of an agent compacts"),
    ),
    (
        "autocompactDisabled",
        IgnoredKey::NotFollowed("not followed: `enabled` switches compaction off"),
    ),
    ("autoRotateSessionFiles", IgnoredKey::NotFollowed(ROTATION)),
    ("autoRotateSessionFilesCreateBackups", IgnoredKey::NotFollowed(ROTATION)),
    ("autoRotateSessionFilesEnabled", IgnoredKey::NotFollowed(ROTATION)),
    ("autoRotateSessionFilesRuntime", IgnoredKey::NotFollowed(ROTATION)),
    ("autoRotateSessionFilesSizeBytes", IgnoredKey::NotFollowed(ROTATION)),
    ("autoRotateSessionFilesStartup", IgnoredKey::NotFollowed(ROTATION)),
    ("cacheAwareCompaction", IgnoredKey::Deprecated(CACHE)),
    ("cacheAwareCompactionEnabled", IgnoredKey::Deprecated(CACHE)),
    ("cacheTtlSeconds", IgnoredKey::Deprecated(CACHE)),
    ("coldCacheObservationThreshold", IgnoredKey::Deprecated(CACHE)),
    (
        "compactionLoopMaxConsecutiveFailures",
        IgnoredKey::NotFollowed("not followed: failed compaction pauses for longer each time"),
    ),
    ("criticalBudgetPressureRatio", IgnoredKey::Deprecated(CACHE)),
    ("dynamicLeafChunkTokens", IgnoredKey::Deprecated(CHUNK)),
    ("dynamicLeafChunkTokensEnabled", IgnoredKey::Deprecated(CHUNK)),
    ("dynamicLeafChunkTokensMax", IgnoredKey::Deprecated(CHUNK)),
    (
        "hostFallbackMode",
        IgnoredKey::NotFollowed("not followed: every host has all calls that the engine needs"),
    ),
    ("hotCacheBudgetHeadroomRatio", IgnoredKey::Deprecated(CACHE)),
    ("hotCachePressureFactor", IgnoredKey::Deprecated(CACHE)),
    (
        "idleCompactMinutes",
        IgnoredKey::NotFollowed("not followed: call `maintain` when the program is idle"),
    ),
    ("independentLogFile", IgnoredKey::NotFollowed(LOG)),
    (
        "largeFilesDir",
        IgnoredKey::NotFollowed("not followed: large payloads stay in the store, in no folder"),
    ),
    ("logFile", IgnoredKey::NotFollowed(LOG)),
    ("logFileEnabled", IgnoredKey::NotFollowed(LOG)),
    ("logMaxFileBytes", IgnoredKey::NotFollowed(LOG)),
    ("maxColdCacheCatchupPasses", IgnoredKey::Deprecated(CACHE)),
    ("openclawDir", IgnoredKey::NotFollowed("not followed: `database_path` names the store")),
    (
        "plugins",
        IgnoredKey::NotFollowed(
            "not read: hand over the object `config` below `plugins.entries`, not the whole file",
        ),
    ),
    (
        "pruneHeartbeatOk",
        IgnoredKey::NotFollowed("not followed: no stored message is deleted by itself"),
    ),
    (
        "summaryBaseUrl",
        IgnoredKey::NotFollowed("not followed: the program names the address with the model"),
    ),
    ("transcriptGcEnabled", IgnoredKey::NotFollowed(ROTATION)),
    (
        "tuiConversationWindowSize",
        IgnoredKey::NotFollowed("not followed: there is no interactive terminal program"),
    ),
];

/// Returns why a key has no effect; `None`: the key is none of the list.
pub(super) fn find_ignored(camel: &str) -> Option<&'static IgnoredKey> {
    IGNORED_KEYS.iter().find(|(key, _)| *key == camel).map(|(_, ignored)| ignored)
}
