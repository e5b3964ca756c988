import Framing
import Message

/// Turns the bytes of one admin connection into whole requests (RFC 9112). Knows no socket.
///
/// Requests are small and are delivered whole: the router sees a request only when its body has arrived.
struct AdminConversation {
    /// Enough for the body of a purge, which contains one URL.
    static let bodyBytesMax = 64 << 10
    /// The most bytes to hold of requests behind the one that is being answered. Beyond that, the socket is not read.
    static let heldBytesMax = 128 << 10

    enum Event {
        /// A whole request with its body. `persists` tells whether the connection can serve another one.
        case request(AdminRequest, persists: Bool)
        /// The client waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1).
        case continueExpected
        /// Not a request that this server reads. The connection closes after this answer.
        case refused(AdminResponse)
    }

    private enum State {
        case head
        case body(AdminRequest, persists: Bool, awaited: Int)
        case chunks(AdminRequest, persists: Bool, ChunkedDecoder)
        case refused
    }

    private let door: AdminRequest.Door
    private let limits: Limits
    private var state: State = .head
    private var input: [UInt8] = []
    private var head = RequestHead()
    private var progress = HeadProgress()

    init(door: AdminRequest.Door) {
        self.door = door
        var limits = Limits()
        limits.headBytesMax = 16 << 10
        limits.targetBytesMax = 8 << 10
        self.limits = limits
    }

    /// Whether no byte of a request has arrived, so that the connection can be closed without harm.
    var isIdle: Bool { if case .head = state { input.isEmpty } else { false } }
    /// Whether reading must wait, because enough bytes are held.
    var isFull: Bool { input.count >= Self.heldBytesMax }

    mutating func receive(_ bytes: some Collection<UInt8>) { input.append(contentsOf: bytes) }

    /// The next step. Returns nil if more bytes are needed.
    mutating func next() -> Event? {
        do throws(FramingError) {
            switch state {
            case .head: return try nextHead()
            case .body(let request, let persists, let awaited): return finishBody(request, persists, awaited)
            case .chunks(let request, let persists, let decoder): return try nextChunks(request, persists, decoder)
            case .refused: return nil
            }
        } catch {
            if error == .badTarget, let encoded = EncodedTarget(ofHead: input.span) {
                input = encoded.applied(to: input.span)
                progress = HeadProgress()
                return next()
            }
            return refuse(.problem(error.requestStatus, "not a request: \(error.reason)"))
        }
    }

    private mutating func nextHead() throws(FramingError) -> Event? {
        guard !input.isEmpty else { return nil }
        let bytes = input  // shares the memory; the span must not overlap what the parser changes
        guard try parseRequestHead(bytes.span, into: &head, progress: &progress, limits: limits) else { return nil }
        let length = try requestBodyLength(head, bytes: bytes.span)
        let options = ConnectionOptions(head.fields, bytes: bytes.span)
        let persists = Framing.persists(minorVersion: head.minorVersion, options)
        let (request, expectsContinue) = currentRequest()
        input.removeFirst(head.byteCount)
        progress = HeadProgress()
        return begin(request, persists: persists, length, expectsContinue: expectsContinue && input.isEmpty)
    }

    private mutating func begin(
        _ request: AdminRequest, persists: Bool, _ length: BodyLength, expectsContinue: Bool
    ) -> Event? {
        switch length {
        case .none, .untilClose, .tunnel:
            return .request(request, persists: persists)
        case .length(let count):
            guard count <= UInt64(Self.bodyBytesMax) else { return refuse(Self.tooLarge) }
            state = .body(request, persists: persists, awaited: Int(count))
        case .chunked:
            state = .chunks(request, persists: persists, ChunkedDecoder(limits: limits))
        }
        return expectsContinue ? .continueExpected : next()
    }

    private mutating func finishBody(_ request: AdminRequest, _ persists: Bool, _ awaited: Int) -> Event? {
        guard input.count >= awaited else { return nil }
        var request = request
        request.body = Array(input.prefix(awaited))
        input.removeFirst(awaited)
        state = .head
        return .request(request, persists: persists)
    }

    private mutating func nextChunks(
        _ request: AdminRequest, _ persists: Bool, _ decoder: ChunkedDecoder
    ) throws(FramingError) -> Event? {
        var request = request
        var decoder = decoder
        while true {
            switch try decoder.step(input.span) {
            case .needMore(let consumed):
                input.removeFirst(consumed)
                state = .chunks(request, persists: persists, decoder)
                return nil
            case .data(let consumed, let range):
                guard request.body.count + range.count <= Self.bodyBytesMax else { return refuse(Self.tooLarge) }
                request.body.append(contentsOf: input[range])
                input.removeFirst(consumed)
            case .end(let consumed):
                input.removeFirst(consumed)
                state = .head
                return .request(request, persists: persists)
            }
        }
    }

    private mutating func refuse(_ response: AdminResponse) -> Event {
        state = .refused
        input = []
        return .refused(response)
    }

    private static let tooLarge = AdminResponse.problem(413, "a body has at most \(bodyBytesMax) bytes here")

    /// The head that was just parsed, and whether it has `Expect: 100-continue`.
    private func currentRequest() -> (AdminRequest, expectsContinue: Bool) {
        let fields = Fields(bytes: input, section: head.fields)
        let target = input[head.target.pathRange]
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        let host = input[head.target.hostRange]
        let request = AdminRequest(
            door: door, method: text(input[head.methodRange]), path: path.isEmpty ? "/" : text(path),
            query: text(target.dropFirst(path.count + 1)), acceptsChunks: head.minorVersion >= 1,
            host: host.isEmpty ? nil : text(host),
            authorization: fields.first(.authorization).map { Array($0) },
            contentType: fields.first(.contentType).map(text),
            acceptsGzip: fields.joined(.acceptEncoding).map { acceptsGzip($0[...]) } ?? false)
        let expect = fields.first(.expect).map { text($0).lowercased() }
        return (request, expect == "100-continue")
    }
}

private func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

/// Whether `Accept-Encoding` names gzip or `*` with a weight above zero (RFC 9110 §12.5.3).
private func acceptsGzip(_ value: ArraySlice<UInt8>) -> Bool {
    let codings = qualityValues(value).map { (name: text($0.token).lowercased(), weight: $0.weight) }
    if let gzip = codings.first(where: { $0.name == "gzip" || $0.name == "x-gzip" }) { return gzip.weight > 0 }
    return codings.contains { $0.name == "*" && $0.weight > 0 }
}
