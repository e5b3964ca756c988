/// The names of the few bytes from which field values of caching are made.
enum Byte {
    static let quote: UInt8 = 0x22
    static let asterisk: UInt8 = 0x2A
    static let comma: UInt8 = 0x2C
    static let equals: UInt8 = 0x3D
    static let backslash: UInt8 = 0x5C
}
