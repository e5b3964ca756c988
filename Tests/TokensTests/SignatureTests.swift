import Message
import TLS
import Testing
import Tokens

@Suite("RFC 7515 Appendix A, RFC 8037 Appendix A: examples")
struct SignatureExampleTests {
    /// The claims of RFC 7519 §3.1.
    static let claims =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

    struct Row: CustomTestStringConvertible {
        let section: String
        let key: String
        let token: String
        var testDescription: String { section }
    }
    static let rows = [
        Row(
            section: "RFC 7515 A.1, RFC 7519 §3.1: HS256",
            key:
                #"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}"#,
            token:
                "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(claims).dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        Row(
            section: "RFC 7515 A.2: RS256",
            key: #"{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qP"#
                + "CJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSX"
                + "ndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK"
                + #"-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}"#,
            token:
                "eyJhbGciOiJSUzI1NiJ9.\(claims).cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4B"
                + "h-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkS"
                + "jtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUi"
                + "pUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"),
        Row(
            section: "RFC 7515 A.3: ES256",
            key:
                #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#,
            token:
                "eyJhbGciOiJFUzI1NiJ9.\(claims).DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKT"
                + "UJqPP3-Kg6NU1Q"),
    ]

    private static func key(_ text: String) throws -> JSONWebKey {
        try #require(JSONWebKeySet(parsing: Array("{\"keys\":[\(text)]}".utf8), allowsShared: true).keys.first)
    }

    @Test(arguments: rows) func `the signature of the example is right, and of nothing else`(_ row: Row) throws {
        let key = try Self.key(row.key)
        let token = try JSONWebToken(Array(row.token.utf8))
        #expect(key.serves(token.algorithm))
        #expect(verifies(token, with: key))
        // Another last digit of the payload, and another first one of the signature.
        let parts = row.token.split(separator: ".").map(String.init)
        let payload = encodeBase64URL(
            #"{"iss":"joe","exp":1300819381,"http://example.com/is_root":true}"#.utf8)
        let changed = try JSONWebToken(
            Array("\(parts[0]).\(String(decoding: payload, as: UTF8.self)).\(parts[2])".utf8))
        #expect(!verifies(changed, with: key))
        let other = "A" + parts[2].dropFirst()
        #expect(!verifies(try JSONWebToken(Array("\(parts[0]).\(parts[1]).\(other)".utf8)), with: key))
        let short = "\(parts[0]).\(parts[1]).\(parts[2].dropLast(4))"
        if let cut = try? JSONWebToken(Array(short.utf8)) { #expect(!verifies(cut, with: key)) }
    }

    /// The payload is no set of claims, so only the signature is looked at. Likewise below.
    @Test func `RFC 7515 A.4: ES512`() throws {
        let key = try Self.key(
            #"{"kty":"EC","crv":"P-521","x":"AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk","#
                + #""y":"ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2"}"#)
        guard case .curve(.p521, let x, let y) = key.material, let verifier = VerificationKey(x: x, y: y) else {
            Issue.record("it is a key of P-521")
            return
        }
        let signature = bytes(
            "AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_7XdtAG8GaSwFKdCAPZgoXD2Y"
                + "BJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn")
        let message = Array("eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA".utf8)
        #expect(verifier.verifies(signature, of: message, by: .ecdsa(.sha512, coordinateBytes: 66)))
        #expect(!verifier.verifies(signature, of: message + [0], by: .ecdsa(.sha512, coordinateBytes: 66)))
    }

    @Test func `RFC 8037 A.4 and A.5: Ed25519`() throws {
        let key = try Self.key(
            #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#)
        guard case .ed25519(let point) = key.material, let verifier = VerificationKey(ed25519: point) else {
            Issue.record("it is a key of Ed25519")
            return
        }
        let message = Array("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".utf8)
        var signature = bytes(
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg")
        #expect(verifier.verifies(signature, of: message, by: .ed25519))
        signature[0] ^= 1
        #expect(!verifier.verifies(signature, of: message, by: .ed25519))
    }
}

@Suite("Public keys")
struct VerificationKeyTests {
    @Test func `a point that is not on the curve is no key`() {
        #expect(VerificationKey(x: [UInt8](repeating: 1, count: 32), y: [UInt8](repeating: 1, count: 32)) == nil)
        #expect(VerificationKey(x: [UInt8](repeating: 1, count: 31), y: [UInt8](repeating: 1, count: 31)) == nil)
    }
}
