package import Framing
package import Message

/// The content of one request in the framing in which it goes to an origin (RFC 9112 §6, §7.1).
///
/// The framing is that of `OutgoingRequest`, whose head announced it: a length, or chunks. The counts are checked: content beyond the announced
/// length would be read as another request (RFC 9112 §11.2), and content that is missing would let the origin wait.
package struct OutgoingBody: Sendable {
    private enum State: Sendable {
        /// So many bytes of an announced length are still to be sent.
        case counted(remaining: UInt64)
        case chunked
        case ended
    }
    private var state: State

    /// - Parameter framing: the framing that the head announced.
    package init(_ framing: BodyLength) {
        switch framing {
        case .none, .tunnel: state = .counted(remaining: 0)
        case .length(let count): state = .counted(remaining: count)
        case .chunked: state = .chunked
        case .untilClose: preconditionFailure("the end of the connection cannot end a request (RFC 9112 §6.3)")
        }
    }

    /// All content and its framing have been made.
    package var isEnded: Bool { if case .ended = state { true } else { false } }

    /// Frames a piece of the content. Content that is sent as it is, is not copied.
    ///
    /// - Parameter send: gets the bytes to send; they are valid for the call only.
    package mutating func append<Outcome>(
        _ content: UnsafeRawBufferPointer, send: (UnsafeRawBufferPointer) -> Outcome
    ) -> Outcome {
        switch state {
        case .counted(let remaining):
            precondition(content.count <= remaining, "the content is longer than its announced length")
            state = .counted(remaining: remaining - UInt64(content.count))
            return unsafe send(content)
        case .chunked:
            // A chunk of no bytes would be the last one.
            guard unsafe !content.isEmpty else { return unsafe send(content) }
            var framed: [UInt8] = []
            framed.reserveCapacity(content.count + 20)
            appendChunkHeader(content.count, to: &framed)
            unsafe framed.append(contentsOf: content)
            framed.append("\r\n")
            return unsafe framed.withUnsafeBytes { unsafe send($0) }
        case .ended: preconditionFailure("nothing follows the end of a body")
        }
    }

    /// Ends the body: all content has been given to `append`.
    ///
    /// - Parameters:
    ///   - trailers: as they were received; those that may not be forwarded are left out (RFC 9110 §6.5.1).
    ///   - own: names of others that are left out, in lower case.
    /// - Returns: the bytes that end the body. Empty if the length ended it.
    package mutating func end(trailers: Fields?, without own: Set<String> = []) -> [UInt8] {
        switch state {
        case .counted(let remaining):
            precondition(remaining == 0, "the content is shorter than its announced length")
            state = .ended
            return []
        case .chunked:
            state = .ended
            var last: [UInt8] = []
            appendLastChunk(trailers: ForwardedHead.trailers(trailers, without: own), to: &last)
            return last
        case .ended: preconditionFailure("a body ends once")
        }
    }
}
