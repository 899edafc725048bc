//! What makes an operation ok, by protocol: all that its answer has to be. Whatever an answer lacks
//! of it, the operation has another outcome.

/// What answers of a protocol have to be.
#[derive(Clone, Copy, Debug)]
pub struct SuccessRules {
    /// The protocol, or the kind of answer.
    pub of: &'static str,
    /// What has to hold, each with the section of the standard that says so.
    pub rules: &'static [(&'static str, &'static str)],
}

/// All protocols. Those that stand on another have its rules, too.
pub const SUCCESS: &[SuccessRules] = &[
    SuccessRules {
        of: "HTTP/1.1",
        rules: &[
            ("The head is a status line and fields", "RFC 9112 §4, §5"),
            (
                "The body is whole: by Content-Length, by its last chunk, or by the end of the \
                 connection, which over TLS is a close_notify",
                "RFC 9112 §6.3, §7.1, §9.8",
            ),
            ("The final status is below 400, or one that the plan expects", "RFC 9110 §15"),
        ],
    },
    SuccessRules {
        of: "HTTP/2",
        rules: &[
            ("Frames and fields of the stream break no rule", "RFC 9113 §4 to §6, §8.2"),
            ("A final header section came, then DATA, then trailers if any", "RFC 9113 §8.1"),
            ("The server ended the stream", "RFC 9113 §8.1"),
            ("DATA has the length of content-length, if that is given", "RFC 9113 §8.1.1"),
            ("The final status is below 400, or one that the plan expects", "RFC 9110 §15"),
        ],
    },
    SuccessRules {
        of: "HTTP/3",
        rules: &[
            ("Frames and fields of the stream break no rule", "RFC 9114 §4 to §7, RFC 9204 §4"),
            ("A final header section came, then DATA, then trailers if any", "RFC 9114 §4.1"),
            ("The server ended the stream", "RFC 9114 §4.1"),
            ("DATA has the length of content-length, if that is given", "RFC 9114 §4.1.2"),
            ("The final status is below 400, or one that the plan expects", "RFC 9110 §15"),
        ],
    },
    SuccessRules {
        of: "Stream of messages",
        rules: &[
            ("The response is a success of its own protocol", ""),
            ("It has a message and does not end within one", "WHATWG HTML §9.2.6"),
            ("The end message came, where one was asked for", "`--end-message`, `--messages`"),
            ("No message is an error of its API, and the output of a known API is complete", ""),
            ("Each line is JSON, where lines of JSON were asked for", "`--messages ndjson`"),
        ],
    },
    SuccessRules {
        of: "gRPC, over HTTP/2",
        rules: &[
            ("The status of HTTP is 200", "gRPC over HTTP2, Responses"),
            ("The content type is application/grpc, or that with + or ;", "Responses"),
            (
                "grpc-status is 0, in the trailers, or in a head that ends the stream; no other differs",
                "Responses",
            ),
            (
                "The body is whole messages, each with the length of its prefix",
                "Length-Prefixed-Message",
            ),
            ("A method that returns one message returned one, not none or two", "Responses"),
            (
                "No message is compressed, unless the call accepts that and grpc-encoding says how",
                "Length-Prefixed-Message",
            ),
        ],
    },
    SuccessRules {
        of: "WebSocket",
        rules: &[
            ("The opening handshake is right", "RFC 6455 §4.1"),
            ("Frames of the server break no rule", "RFC 6455 §5"),
            (
                "A whole message came that has the number of the one sent, or its place",
                "RFC 6455 §5.6",
            ),
            ("A text is UTF-8", "RFC 6455 §8.1"),
        ],
    },
    SuccessRules {
        of: "DNS",
        rules: &[
            ("It answers a standard query: QR and OPCODE", "RFC 1035 §4.1.1"),
            ("It has the id and the question of the query", "RFC 1035 §4.1.2, RFC 5452 §9.1"),
            ("It has all records that its header counts, and no more bytes", "RFC 1035 §4.1"),
            ("Each name ends: pointers lead to what stands before", "RFC 1035 §4.1.4"),
            ("A, AAAA, NS, CNAME, PTR, MX and SOA have the data of their type", "RFC 1035 §3.3"),
            (
                "RCODE with its upper bits is NOERROR, also without an answer record",
                "RFC 1035 §4.1.1, RFC 6891 §6.1.3",
            ),
            ("It is not truncated: over UDP the query is asked again over TCP", "RFC 7766 §5"),
        ],
    },
    SuccessRules {
        of: "Compressed body, where something in it is read",
        rules: &[
            ("The codings are gzip, deflate, br or zstd, up to five in a row", "RFC 9110 §8.4"),
            (
                "It decodes to its end, with its checks, and no bytes follow that",
                "RFC 1950 to 1952, RFC 7932, RFC 8878",
            ),
            ("It decodes to 16 MiB at most, or to 100 times its size", ""),
        ],
    },
    SuccessRules {
        of: "Values from JSON",
        rules: &[("The body is one JSON value: not cut, and nothing behind it", "RFC 8259 §2")],
    },
];
