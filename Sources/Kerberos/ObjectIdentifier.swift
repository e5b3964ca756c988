import CGSSAPI

/// A name for a mechanism or for a kind of names, as the library wants it: the content of its DER encoding.
struct ObjectIdentifier {
    let bytes: [UInt8]

    /// SPNEGO, 1.3.6.1.5.5.2 (RFC 4178 §3).
    static let spnego = ObjectIdentifier(bytes: [0x2B, 0x06, 0x01, 0x05, 0x05, 0x02])
    /// Kerberos, 1.2.840.113554.1.2.2 (RFC 4121 §1).
    static let kerberos = ObjectIdentifier(bytes: [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 0x01, 0x02, 0x02])
    /// `service@host`, 1.2.840.113554.1.2.1.4 (RFC 2743 §4.1).
    static let service = ObjectIdentifier(bytes: [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 0x01, 0x02, 0x01, 0x04])
    /// A user, 1.2.840.113554.1.2.1.1 (RFC 2743 §4.2). For Kerberos it is a principal, with or without a realm.
    static let user = ObjectIdentifier(bytes: [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 0x01, 0x02, 0x01, 0x01])

    func lend<Result>(_ body: (gss_OID) -> Result) -> Result {
        var bytes = bytes
        return unsafe bytes.withUnsafeMutableBytes { bytes in
            var identifier = unsafe gss_OID_desc(length: OM_uint32(bytes.count), elements: bytes.baseAddress)
            return unsafe body(&identifier)
        }
    }

    /// Lends a set with this member alone.
    func lendSet<Result>(_ body: (gss_OID_set) -> Result) -> Result {
        unsafe lend { identifier in
            var set = unsafe gss_OID_set_desc(count: 1, elements: identifier)
            return unsafe body(&set)
        }
    }
}
