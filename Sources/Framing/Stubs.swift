package import Message

package struct HeadProgress: Sendable { package init() {} }
package func parseRequestHead(
    _ bytes: borrowing Span<UInt8>, into head: inout RequestHead, progress: inout HeadProgress, limits: Limits
) throws(FramingError) -> Bool { preconditionFailure("not yet") }
package func parseResponseHead(
    _ bytes: borrowing Span<UInt8>, into head: inout ResponseHead, progress: inout HeadProgress, limits: Limits
) throws(FramingError) -> Bool { preconditionFailure("not yet") }
package enum BodyLength: Sendable, Equatable { case none, length(UInt64), chunked, untilClose, tunnel }
package func requestBodyLength(_ head: RequestHead, bytes: borrowing Span<UInt8>) throws(FramingError) -> BodyLength {
    preconditionFailure("not yet")
}
package func responseBodyLength(
    _ head: ResponseHead, to method: Method, bytes: borrowing Span<UInt8>
) throws(FramingError) -> BodyLength { preconditionFailure("not yet") }
package struct ConnectionOptions: Sendable {
    package var close = false
    package var keepAlive = false
    package var upgrade = false
    /// The other names, lower case: fields that end with this hop.
    package var names: [[UInt8]] = []
    package init() {}
    package init(_ fields: FieldSection, bytes: borrowing Span<UInt8>) {}
    /// Whether the Connection field names that field; any case.
    package func names(_ field: some Collection<UInt8>) -> Bool { false }
}
package func persists(minorVersion: UInt8, _ options: ConnectionOptions) -> Bool { false }
package struct ChunkedDecoder: Sendable {
    package enum Step: Equatable, Sendable {
        /// All that can be used is used: drop `consumed` bytes, call again with what follows and more.
        case needMore(consumed: Int)
        /// Body bytes at `range` of the input; drop `consumed` and call again.
        case data(consumed: Int, range: Range<Int>)
        /// The body is complete with its trailers; what follows `consumed` is the next message.
        case end(consumed: Int)
    }
    /// The trailer section; nil where there was none.
    package private(set) var trailers: Fields?
    package init(limits: Limits) {}
    package mutating func step(_ bytes: borrowing Span<UInt8>) throws(FramingError) -> Step { .needMore(consumed: 0) }
}
package func appendChunkHeader(_ count: Int, to bytes: inout [UInt8]) {}
package func appendLastChunk(trailers: Fields?, to bytes: inout [UInt8]) {}
package func appendStatusLine(_ status: UInt16, reason: ArraySlice<UInt8>?, to bytes: inout [UInt8]) {}
package func appendRequestLine(
    _ method: some Collection<UInt8>, _ target: some Collection<UInt8>, to bytes: inout [UInt8]
) {}
package func appendFieldLine(
    _ name: some Collection<UInt8>, _ value: some Collection<UInt8>, to bytes: inout [UInt8]
) {}
package func appendFieldLine(_ name: FieldName, _ value: some Collection<UInt8>, to bytes: inout [UInt8]) {}
package func appendFieldLines(_ fields: Fields, to bytes: inout [UInt8]) {}
package func isHopByHop(_ name: FieldName) -> Bool { false }
