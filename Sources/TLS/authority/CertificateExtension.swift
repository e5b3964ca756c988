import COpenSSL

/// An extension of a certificate that is made here (RFC 5280 §4.2.1).
enum CertificateExtension {
    /// Critical for an authority; a leaf states that it is none.
    case authority(pathLengthMax: UInt8?)
    case notAnAuthority
    /// Signs certificates and lists of revoked ones. Critical.
    case signsCertificates
    /// Signs handshakes. Critical.
    case signsHandshakes
    /// The certificate is for servers.
    case serverAuthentication
    case subjectKeyIdentifier([UInt8])
    case authorityKeyIdentifier([UInt8])
    /// - Parameter isOnlyName: the subject is empty, which makes the extension critical (§4.2.1.6).
    case subjectAlternativeName(LeafName, isOnlyName: Bool)
    /// Critical.
    case nameConstraints(NameConstraints)

    var kind: CInt {
        switch self {
        case .authority, .notAnAuthority: NID_basic_constraints
        case .signsCertificates, .signsHandshakes: NID_key_usage
        case .serverAuthentication: NID_ext_key_usage
        case .subjectKeyIdentifier: NID_subject_key_identifier
        case .authorityKeyIdentifier: NID_authority_key_identifier
        case .subjectAlternativeName: NID_subject_alt_name
        case .nameConstraints: NID_name_constraints
        }
    }

    var isCritical: Bool {
        switch self {
        case .authority, .notAnAuthority, .signsCertificates, .signsHandshakes, .nameConstraints: true
        case .serverAuthentication, .subjectKeyIdentifier, .authorityKeyIdentifier: false
        case .subjectAlternativeName(_, let isOnlyName): isOnlyName
        }
    }

    var der: [UInt8] {
        switch self {
        case .authority(nil): DER.sequence(DER.true)
        case .authority(let length?): DER.sequence(DER.true, DER.integer(length))
        case .notAnAuthority: DER.sequence()  // FALSE is the default, which DER leaves out
        case .signsCertificates: DER.bits([5, 6])
        case .signsHandshakes: DER.bits([0])
        case .serverAuthentication: DER.sequence([0x06, 0x08, 0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01])
        case .subjectKeyIdentifier(let identifier): DER.octetString(identifier)
        case .authorityKeyIdentifier(let identifier): DER.sequence(DER.tagged(0, identifier))
        case .subjectAlternativeName(.dns(let name), _): DER.sequence(DER.tagged(2, Array(name.utf8)))
        case .subjectAlternativeName(.address(let address), _): DER.sequence(DER.tagged(7, address))
        case .nameConstraints(let constraints): constraints.der
        }
    }
}

extension NameConstraints {
    fileprivate var der: [UInt8] {
        let permitted = Self.subtrees(permittedNames, permittedAddresses)
        let excluded = Self.subtrees(excludedNames, excludedAddresses)
        return DER.sequence(
            permitted.isEmpty ? [] : DER.taggedSequence(0, permitted),
            excluded.isEmpty ? [] : DER.taggedSequence(1, excluded))
    }

    private static func subtrees(_ names: [String], _ ranges: [AddressRange]) -> [UInt8] {
        names.flatMap { DER.sequence(DER.tagged(2, Array($0.utf8))) }
            + ranges.flatMap { DER.sequence(DER.tagged(7, $0.address + $0.mask)) }
    }
}
