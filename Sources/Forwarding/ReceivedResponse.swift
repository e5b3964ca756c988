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

    package var reason: ArraySlice<UInt8> { fields.bytes[reasonRange] }
}
