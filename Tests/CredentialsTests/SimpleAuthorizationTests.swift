import Credentials
import Testing

@Suite("RFC 7617 Basic and RFC 6750 Bearer, as Larder sends them")
struct SimpleAuthorizationTests {
    static let basic: [(user: String, password: String, expected: Result<String, CredentialFault>)] = [
        // RFC 7617 §2 and §2.1
        ("Aladdin", "open sesame", .success("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")),
        ("test", "123£", .success("Basic dGVzdDoxMjPCow==")), ("", "", .success("Basic Og==")),
        ("a", "b:c", .success("Basic YTpiOmM=")), ("a:b", "c", .failure(.userHasColon)),
        ("a\n", "b", .failure(.userHasControlCharacter)), ("a\u{7F}", "b", .failure(.userHasControlCharacter)),
        ("a", "b\r", .failure(.passwordHasControlCharacter)), ("a", "b\0", .failure(.passwordHasControlCharacter)),
    ]
    @Test(arguments: basic) func `Basic encodes user and password`(
        _ row: (user: String, password: String, expected: Result<String, CredentialFault>)
    ) {
        let result = Result { () throws(CredentialFault) in
            text(try basicAuthorization(user: row.user, password: Secret(row.password)).bytes)
        }
        #expect(result == row.expected)
    }

    static let bearer: [(token: String, expected: Result<String, CredentialFault>)] = [
        ("mF_9.B5f-4.1JqM", .success("Bearer mF_9.B5f-4.1JqM")), ("a+/~b==", .success("Bearer a+/~b==")),
        ("", .failure(.tokenIsNoToken68)), ("=", .failure(.tokenIsNoToken68)), ("a=b", .failure(.tokenIsNoToken68)),
        ("a b", .failure(.tokenIsNoToken68)), ("a\r\nX: y", .failure(.tokenIsNoToken68)),
    ]
    @Test(arguments: bearer) func `Bearer sends a token68 as it is`(
        _ row: (token: String, expected: Result<String, CredentialFault>)
    ) {
        let result = Result { () throws(CredentialFault) in
            text(try bearerAuthorization(token: Secret(row.token)).bytes)
        }
        #expect(result == row.expected)
    }

    @Test func `every fault has a text of its own`() {
        #expect(Set(CredentialFault.allCases.map(\.text)).count == CredentialFault.allCases.count)
    }
}
