/// RFC 9112 where it binds a proxy, which is a server to its clients and a client to origins.
extension Requirements {
    static let messages = [
        Requirement(
            "2.2", .should, "skip an empty line before a request line",
            "RequestLineTests: a few empty lines in front (§2.2)"),
        Requirement(
            "2.2", .must, "refuse white space between the start line and the first field, or skip it",
            "FieldLineTests: white space before the first field (§2.2)"),
        Requirement(
            "2.2", .must, "not take a bare CR for the end of a line", "FieldLineTests: a bare CR in a value",
            "FieldLineTests: a bare CR for the empty line", "ChunkedTests: a bare CR after the size"),
        Requirement(
            "2.2", .may, "take a bare LF for the end of a line",
            decision: "refused: what one recipient reads as one line and another as two is how requests are smuggled"),
        Requirement(
            "2.2", .should, "answer what is not HTTP with 400, and close",
            "ErrorScenarios: bytes that are not a request are refused with a reason"),
        Requirement(
            "2.3", .must, "send its own version in messages that it forwards",
            "MessageScenarios: each side is sent HTTP/1.1, whatever version it speaks (§2.3)"),
        Requirement(
            "3", .should, "400 to a request line that is not valid, without mending it",
            "RequestLineTests: a space within the target", "RequestLineTests: two spaces after the method"),
        Requirement(
            "3", .must, "414 to a target that is too long",
            "HeadLimitsTests: a target of the largest length is accepted, and one byte more is refused with 414"),
        Requirement(
            "3.2", .must, "400 to a request without Host, with two, or with one that is not valid",
            "RequestTargetTests: Host must be present once and valid"),
        Requirement(
            "3.2.2", .must, "take the host from an absolute-form target, not from Host",
            "RequestTargetTests: absolute-form wins over Host (§3.2.2)"),
        Requirement(
            "3.2.2", .must, "send the host of the target as Host",
            "ForwardingTests: the Host field is that of the target, whatever the client sent"),
        Requirement(
            "3.2.3", .must, "authority-form is host and port, for CONNECT alone",
            "RequestTargetTests: CONNECT without a port",
            "RequestTargetTests: authority-form for another method than CONNECT"),
        Requirement(
            "3.2.4", .must, "send OPTIONS for a whole server as *",
            "MessageScenarios: OPTIONS for a whole server reaches it as * (§3.2.4)",
            "InterceptionScenarios: OPTIONS for the whole server is the origin's, and Larder answers at zero"),
        Requirement(
            "4", .must, "a status line has a status of three digits; its reason may be empty",
            "StatusLineTests: an empty reason", "StatusLineTests: a status of two digits"),
        Requirement(
            "5.1", .must, "refuse white space between a field name and its colon, in requests with 400",
            "FieldLineTests: a space before the colon (§5.1)",
            "ErrorScenarios: bytes that are not a request are refused with a reason"),
        Requirement(
            "5.1", .must, "remove such white space from a response",
            decision: "the response is refused with 502: a line that others read differently is not passed on mended"),
        Requirement(
            "5.2", .must, "refuse a folded line in a request with 400, and in a response with 502, or unfold it",
            "FieldLineTests: obs-fold (§5.2)", "FieldLineTests: obs-fold with HTAB"),
        Requirement(
            "6.1", .must, "read chunked", "BodyLengthTests: chunked in any case", "ChunkedTests: two chunks"),
        Requirement(
            "6.1", .should, "501 to a transfer coding that is not understood", "BodyLengthTests: a coding nobody knows"),
        Requirement(
            "6.1", .mustNot, "send Transfer-Encoding to a client of HTTP/1.0",
            "ForwardingTests: an HTTP/1.0 client gets the body until the end of the connection"),
        Requirement(
            "6.1", .must, "take Transfer-Encoding in HTTP/1.0 for faulty framing",
            "BodyLengthTests: Transfer-Encoding is refused in HTTP 1.0"),
        Requirement(
            "6.3", .must, "rule 1: no body behind 1xx, 204, 304, nor in answer to HEAD",
            "BodyLengthTests: these never have a body (rule 1)",
            "ForwardingTests: 204 and 304 have no body, and the connection stays open"),
        Requirement(
            "6.3", .must, "rule 2: a 2xx to CONNECT makes a tunnel, whatever its fields say",
            "BodyLengthTests: a successful CONNECT is a tunnel, whatever its fields say (rule 2)"),
        Requirement(
            "6.3", .should, "rule 3: Transfer-Encoding beside Content-Length is an error",
            "BodyLengthTests: both (rule 3)",
            "MessageScenarios: nothing behind a request with two framings is read (§6.3 rule 3, §11.2)",
            "MessageScenarios: a response with two framings is 502, and its connection is not used again"),
        Requirement(
            "6.3", .must, "rule 4: 400 where chunked is not the last coding of a request",
            "BodyLengthTests: chunked not last"),
        Requirement(
            "6.3", .must, "rule 5: a Content-Length that is not valid is an error, equal values may be one",
            "BodyLengthTests: differing repeats", "BodyLengthTests: equal members are one", "BodyLengthTests: a sign"),
        Requirement(
            "6.3", .mustNot, "take what follows a response for the next one",
            "MessageScenarios: bytes behind a response do not answer another request (§6.3, §11.1)"),
        Requirement(
            "7.1", .must, "be ready for chunk sizes that are too large for it", "ChunkedTests: 2^64",
            "ChunkedTests: seventeen digits"),
        Requirement(
            "7.1.1", .must, "ignore chunk extensions", "ChunkedTests: an extension",
            "ChunkedTests: extensions with values"
        ),
        Requirement(
            "7.1.2", .may, "pass trailers on, or drop them",
            "ForwardingTests: trailers of a chunked body are passed on",
            "RequestRegressionTests: deceptive trailers of a response do not reach the client"),
        Requirement(
            "8", .must, "treat a message that ends early as incomplete, and let the client see it",
            "ResumeScenarios: without a strong validator a truncated response is neither completed nor stored",
            "FaultScenarios: an HTTP/1.0 client sees that a chunked body broke off"),
        Requirement(
            "9.3", .must, "say close where the connection ends, and keep it where nothing says so",
            "BodyLengthTests: a connection persists"),
        Requirement(
            "9.3.1", .may, "send an idempotent request again after the connection closed",
            "ForwardingTests: an idempotent request on a dead pooled connection is sent again"),
        Requirement(
            "9.3.1", .shouldNot, "send a request again that is not idempotent",
            "ForwardingTests: POST is not sent twice",
            "MethodOverrideScenarios: a request with an overridden method is never sent twice"),
        Requirement(
            "9.3.2", .must, "answer pipelined requests in their order",
            "ForwardingTests: pipelined requests are answered in order"),
        Requirement(
            "9.6", .must, "read no request behind one that says close",
            "MessageScenarios: no request is read behind one with Connection close (§9.6)"),
    ]

    /// RFC 9110 where it binds a proxy: routing, forwarding, and what concerns one connection only.
    static let forwarding = [
        Requirement(
            "4.2.4", .should, "refuse user information in an authority", "RequestTargetTests: userinfo",
            "RequestTargetTests: userinfo with CONNECT"),
        Requirement(
            "5.1", .must, "forward fields that it does not know",
            "ForwardingTests: order and spelling of fields are kept"),
        Requirement(
            "5.3", .mustNot, "change the order of lines with one name",
            "ForwardingTests: order and spelling of fields are kept",
            "FieldLineTests: order, repetition and spelling are kept"),
        Requirement(
            "5.4", .must, "4xx to fields that are larger than it reads",
            "HeadLimitsTests: a head of the largest size is accepted, and one byte more is refused with 431",
            "HeadLimitsTests: the largest number of fields is accepted, and one more is refused with 431"),
        Requirement(
            "6.5.1", .mustNot, "merge trailers into the header section",
            "FieldScenarios: trailers reach the readers of the transfer and no later client",
            "RequestRegressionTests: deceptive trailers of a request do not reach the origin"),
        Requirement(
            "7.6.1", .must, "remove Connection and the fields it names",
            "ForwardingTests: hop-by-hop fields and those that Connection names are dropped in both directions"),
        Requirement(
            "7.6.1", .should, "remove fields that are known to be hop-by-hop, whether or not they are named",
            "BodyLengthTests: hop-by-hop fields"),
        Requirement(
            "7.6.2", .must, "count Max-Forwards down for TRACE and OPTIONS, and answer at zero",
            "ForwardingTests: Max-Forwards is decremented for TRACE and OPTIONS alone"),
        Requirement(
            "7.6.3", .must, "add itself to Via, in its place",
            "ForwardingTests: Via is added in both directions, behind the received members"),
        Requirement(
            "7.6.3", .may, "refuse a request that comes back to it",
            "ForwardingTests: a request that has passed through before is refused with 508"),
        Requirement(
            "7.7", .mustNot, "transform content that says no-transform",
            "ContentCodingTests: a text, no-transform", "ContentCodingTests: the request says no-transform"),
        Requirement(
            "7.8", .must, "ignore Upgrade in a request of HTTP/1.0",
            "AccessScenarios: Upgrade is ignored in HTTP 1.0, and in all requests but GET"),
        Requirement(
            "7.8", .may, "forward Upgrade, which is the client's to ask for: no field of it otherwise",
            "AccessScenarios: websocket passes 101 and bytes",
            "ForwardingTests: hop-by-hop fields and those that Connection names are dropped in both directions"),
    ]

    /// Of RFC 9110 §9: methods that a proxy treats in ways of their own.
    static let methods = [
        Requirement(
            "9.3.6", .must, "CONNECT: a tunnel that carries bytes both ways until both ends are closed",
            "AccessScenarios: a tunnel carries early data in both directions and keeps half-closes"),
        Requirement(
            "9.3.6", .mustNot, "take bytes behind a refused CONNECT for requests",
            "RequestRegressionTests: bytes behind a refused CONNECT are not read as requests"),
        Requirement(
            "9.3.8", .mustNot, "send credentials back in an answer to TRACE",
            "ForwardingTests: Max-Forwards is decremented for TRACE and OPTIONS alone"),
        Requirement(
            "10.1.1", .must, "forward Expect: 100-continue, or answer it",
            "ForwardingTests: Expect 100-continue is forwarded end to end",
            "RequestRegressionTests: a client that waits for 100 Continue may wait as long as the origin takes"),
        Requirement(
            "10.1.1", .should, "repeat a request whose expectation of its own got 417, without it",
            "CredentialScenarios: an origin that does not know Expect gets the body without it, and is not asked again"
        ),
        Requirement(
            "10.1.4", .must, "not forward TE, which is for one connection",
            "ForwardingTests: hop-by-hop fields and those that Connection names are dropped in both directions"),
    ]

    /// Of RFC 9110 §15 and §15.2.
    static let interim = [
        Requirement(
            "15", .should, "treat a status outside of 100 to 599 as 5xx",
            "RetrievalTests: a status above 599 counts as 5xx (RFC 9110 §15)",
            "ExtremeNumberScenarios: a stale response may take its place (RFC 5861 §4)"),
        Requirement(
            "15.2", .must, "forward interim responses that it did not ask for itself",
            "FieldScenarios: 102 and 103 reach the client with their fields, and are never stored (RFC 9110 §15.2)"),
        Requirement(
            "15.2", .mustNot, "send an interim response to a client of HTTP/1.0",
            "FieldScenarios: an HTTP/1.0 client gets no interim response"),
        Requirement(
            "15.2", .mustNot, "send anything but the body behind a final head",
            "InterimScenarios: an interim response before the rest of a body does not reach the client",
            "InterimScenarios: an interim response before the bytes of a hole does not reach the client"),
        Requirement(
            "15.2.2", .mustNot, "take a 101 that nobody asked for",
            "MessageScenarios: a 101 that nobody asked for is 502 (RFC 9110 §15.2.2)"),
    ]
}
