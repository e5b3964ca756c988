import Framing
import Message

/// The head of a response as it came from an origin.
struct ReceivedResponse {
    let status: UInt16
    let minorVersion: UInt8
    let fields: Fields
    let options: ConnectionOptions
    private let reasonRange: Range<Int>

    init(_ head: ResponseHead, bytes: [UInt8]) {
        status = head.status
        minorVersion = head.minorVersion
        fields = Fields(bytes: bytes, section: head.fields)
        options = ConnectionOptions(head.fields, bytes: bytes.span)
        reasonRange = head.reasonRange
    }

    var reason: ArraySlice<UInt8> { fields.bytes[reasonRange] }
}
