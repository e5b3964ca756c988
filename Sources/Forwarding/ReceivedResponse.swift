package import Framing
package import Message

/// The head of a response as received from an origin. Immutable, so that it is shared and not copied.
package final class ReceivedResponse {
    package let status: UInt16
    package let minorVersion: UInt8
    package let fields: Fields
    package let options: ConnectionOptions
    private let reasonRange: Range<Int>

    package init(_ head: ResponseHead, bytes: [UInt8]) {
        status = head.status
        minorVersion = head.minorVersion
        fields = Fields(bytes: bytes, section: head.fields)
        options = ConnectionOptions(head.fields, bytes: bytes.span)
        reasonRange = head.reasonRange
    }

    /// The length of the body (RFC 9112 §6.3).
    ///
    /// - Parameter method: the method of the request that is answered.
    package func bodyLength(to method: Method) throws(FramingError) -> BodyLength {
        let bytes = fields.bytes
        return try responseBodyLength(
            status: status, fields.section, minorVersion: minorVersion, to: method, bytes: bytes.span)
    }

    package var reason: ArraySlice<UInt8> { fields.bytes[reasonRange] }
    var reasonLength: Int { reasonRange.count }
}
