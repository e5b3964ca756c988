import Caching
import EventLoop
import Forwarding
import Framing
import Message
import Routing

/// Makes the request that a client would have sent, with the parser that reads requests of clients.
func explainedRequest(
    _ question: ExplainQuestion, shared: Shared, snapshot: Snapshot, zones: [Zone]
) throws(ExplainError) -> OwnedRequest {
    let bytes = try requestBytes(question)
    var head = RequestHead()
    var progress = HeadProgress()
    let isWhole: Bool
    let bodyLength: BodyLength
    do throws(FramingError) {
        isWhole = try parseRequestHead(bytes.span, into: &head, progress: &progress, limits: snapshot.limits)
        bodyLength = try requestBodyLength(head, bytes: bytes.span)
    } catch {
        throw ExplainError(message: "the proxy would refuse this with \(error.requestStatus): \(error.reason)")
    }
    guard isWhole else { throw ExplainError(message: "the request is incomplete") }
    var cache = CacheRequest(method: head.method, fields: head.fields, bytes: bytes.span)
    switch bodyLength {
    case .none, .length(0), .tunnel: break
    case .length, .chunked, .untilClose: cache.hasBody = true
    }
    var keyBytes: [UInt8] = []
    appendNormalisedURI(head.target, of: bytes.span, to: &keyBytes)
    let destinations = Destinations()
    let request = OwnedRequest(
        bytes: bytes, head: head, options: ConnectionOptions(head.fields, bytes: bytes.span), bodyLength: bodyLength,
        cache: cache, keyBytes: keyBytes, key: shared.key(of: keyBytes),
        client: question.client ?? IPAddress(v4: 0x7F00_0001),
        destination: destinations.destination(bytes.span.extracting(head.target.hostRange)), zone: zones[0],
        handling: snapshot.cacheRules.defaultHandling, id: nil, tunnel: nil)
    request.readsDetails = snapshot.access.looksAtDetails
    request.applyRules(by: snapshot, zones: zones, shared, now: .read())
    // It goes nowhere, so any number will do.
    if request.beginsPin { request.pin(to: .client(0)) }
    return request
}

private func requestBytes(_ question: ExplainQuestion) throws(ExplainError) -> [UInt8] {
    guard !question.method.isEmpty, question.method.utf8.allSatisfy(isTchar) else {
        throw ExplainError(message: "\"\(question.method)\" is not a method")
    }
    let written = Array(question.target.utf8)
    let pathStart = startOfPath(in: written)
    let target = written[..<pathStart] + (encodingBeyondASCII(written[pathStart...]) ?? Array(written[pathStart...]))
    guard !target.isEmpty, target.allSatisfy(isVchar) else {
        throw ExplainError(message: "\"\(question.target)\" is not a URL")
    }
    let isTunnel = question.method == "CONNECT"
    let authority = isTunnel ? question.target : authority(of: question.target)
    guard let authority else {
        throw ExplainError(message: "\"\(question.target)\" is not an absolute URL such as http://example.org/file")
    }
    var bytes: [UInt8] = []
    appendRequestLine(question.method.utf8, target.prefix { $0 != UInt8(ascii: "#") }, to: &bytes)
    var hasHost = false
    for line in question.fields {
        let parts = line.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, parts[0].allSatisfy(isTchar),
            parts[1].allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) })
        else { throw ExplainError(message: "\"\(line)\" is not a field line: it must be \"Name: value\"") }
        hasHost = hasHost || equalsIgnoringCase(Array(parts[0]), Array("host".utf8))
        bytes += line.utf8
        bytes += [0x0D, 0x0A]
    }
    if !hasHost { appendFieldLine(.host, authority.utf8, to: &bytes) }
    return bytes + [0x0D, 0x0A]
}

/// The value of `Host` for an absolute http or https URL. Returns nil for any other text.
private func authority(of target: String) -> String? {
    guard let uri = TargetURI(target.utf8) else { return nil }
    return uri.port == uri.scheme.defaultPort ? uri.host : "\(uri.host):\(uri.port)"
}
