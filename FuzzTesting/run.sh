#!/bin/sh
# Fuzzes every parser for so many seconds (60 by default): FuzzTesting/run.sh [seconds] [target ...]
# With 0 each target runs its seeds and the inputs that failed before, once.
# Inputs that fail are kept in FuzzTesting/FailCases/<target>/, where the unit tests replay them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
seconds=${1:-60}
limit="-max_total_time=$seconds"
[ "$seconds" -eq 0 ] && limit=-runs=0
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- FuzzRequestHead FuzzResponseHead FuzzChunkedBody FuzzAnswer FuzzClientHello FuzzProxyHeader FuzzSocksServer FuzzDiskRecord FuzzDiskBook FuzzReleaseIndex FuzzPathPattern FuzzChallenges FuzzProxyAuthorization FuzzTokens FuzzNTLM FuzzPlaceholders FuzzSocks FuzzHostsFile FuzzDNSAnswer FuzzCookies FuzzPACAnswer FuzzTimeZone FuzzRedis FuzzFleet FuzzText

export LARDER_FUZZ=1
scratch="$here/../.build/fuzz"
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT

seed() { # seed TARGET NAME TEXT
    mkdir -p "$corpus/$1"
    printf "$3" >"$corpus/$1/$2"
}
seed FuzzRequestHead absolute 'GET http://a.example:80/b/../c%%7e?q HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\n\r\n'
seed FuzzRequestHead origin 'POST / HTTP/1.1\r\nHost: [::1]:8080\r\nContent-Length: 5, 5\r\nConnection: close, x\r\n\r\n'
seed FuzzRequestHead connect 'CONNECT a.example:443 HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n'
seed FuzzRequestHead repeated 'GET http://a.example:81/b HTTP/1.1\r\nHost: a\r\n\r\n\000HEAD http://a.example:81/c HTTP/1.1\r\nHost: a\r\n\r\n'
seed FuzzRequestHead chunked '\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
seed FuzzRequestHead beyond 'GET http://a.example/\303\274?\351=%%c3 HTTP/1.1\r\nHost: a\r\n\r\n'
seed FuzzRequestHead host 'GET http://\303\274.example./\303\274 HTTP/1.1\r\nHost: A.example.\r\n\r\n'
seed FuzzRequestHead long 'PUT http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n'
seed FuzzRequestHead range 'GET http://a/ HTTP/1.1\r\nHost: a\r\nRange: bytes=9007199254740991-,-18446744073709551616,0-99999999999999999999\r\n\r\n'
seed FuzzRequestHead dots 'CONNECT A.Example.:443 HTTP/1.1\r\nHost: a.example.:443\r\n\r\n\000GET http://a.example../ HTTP/1.1\r\nHost: a\r\n\r\n'
seed FuzzRequestHead address 'GET http://127.0.0.1.:80/ HTTP/1.1\r\nHost: 127.0.0.1.\r\n\r\n'
seed FuzzRequestHead port 'GET http://a:65536/ HTTP/1.1\r\nHost: a:18446744073709551616\r\n\r\n\000GET http://a:00080/ HTTP/1.1\r\nHost: a:0080\r\n\r\n'
seed FuzzRequestHead longer 'PUT http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n\000PUT http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 00000000000000000000005\r\n\r\n'
seed FuzzRequestHead bytes 'G\305T http://a/ HTTP/1.1\r\nHost: a\r\nX-\303\274: \303\274\r\n\r\n'
seed FuzzResponseHead ok 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n'
seed FuzzResponseHead bare 'HTTP/1.0 304\r\n\r\n'
seed FuzzResponseHead chunked 'HTTP/1.1 404 Not\tFound\r\nTransfer-Encoding: gzip, chunked\r\n\r\n'
seed FuzzResponseHead long 'HTTP/1.1 999 X\r\nContent-Length: 9007199254740992\r\nRetry-After: 99999999999999999999\r\nExpires: Fri, 31 Dec 9999 23:59:59 GMT\r\n\r\n'
seed FuzzResponseHead part 'HTTP/1.1 206 X\r\nContent-Range: bytes 9007199254740988-9007199254740990/9007199254740991\r\nDate: Sat, 01 Jan 0000 00:00:00 GMT\r\n\r\n'
seed FuzzResponseHead longer 'HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n'
seed FuzzResponseHead total 'HTTP/1.1 206 X\r\nContent-Range: bytes 0-9223372036854775806/9223372036854775807\r\nAge: 18446744073709551616\r\n\r\n'
seed FuzzResponseHead bytes 'HTTP/1.1 200 \303\204h\377\r\nX: \200\377\r\n\r\n'
seed FuzzChunkedBody plain '5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n'
seed FuzzChunkedBody rich '1;a;b=c ; d="e\\"f"\r\nx\r\n0\r\nTrailer-Name: value\r\nX: y\r\n\r\n'
seed FuzzChunkedBody long '1fffffffffffff\r\nabc'
seed FuzzChunkedBody longer '7fffffffffffffff\r\nabc'
seed FuzzChunkedBody longest 'ffffffffffffffff\r\nabc'
seed FuzzChunkedBody around '10000000000000005\r\nhello\r\n0\r\n\r\n'
seed FuzzChunkedBody zeros '0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n'
seed FuzzChunkedBody bytes '5;\303\274=\"\377\"\r\nhello\r\n0\r\nX: \303\274\377\r\n\r\n'
seed FuzzAnswer length '0HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP'
seed FuzzAnswer chunked '0HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5;a\r\nhello\r\n0\r\nT: v\r\n\r\n'
seed FuzzAnswer head '1HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'
seed FuzzAnswer close '2HTTP/1.0 200\r\n\r\nuntil close'
seed FuzzAnswer long '0HTTP/1.1 600 X\r\nContent-Length: 9007199254740991\r\n\r\nabc'
seed FuzzClientHello named '\026\003\001\0000\001\000\000\054\003\003aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\000\000\002\023\001\001\000\000\013\000\000\000\007\000\005\000\000\002a.'
seed FuzzProxyHeader line 'PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\nGET'
seed FuzzProxyHeader binary '\r\n\r\n\000\r\nQUIT\n\041\021\000\017\300\000\002\001\300\000\002\002\334\004\001\273\004\000\000'
seed FuzzProxyHeader ports 'PROXY TCP4 192.0.2.1 192.0.2.2 65536 99999\r\n'
seed FuzzProxyHeader long '\r\n\r\n\000\r\nQUIT\n\041\021\377\377\300\000\002\001'
seed FuzzProxyHeader numbers 'PROXY TCP4 4294967296.0.0.1 192.0.2.2 4294967297 00443\r\n'
seed FuzzProxyHeader bytes 'PROXY TCP4 192.0.2.1 192.0.2.\331\241 56324 443\r\n'
seed FuzzProxyHeader six 'PROXY TCP6 ::ffff:192.0.2.1 2001:db8::1 65535 1\r\nGET'
seed FuzzProxyHeader values '\r\n\r\n\000\r\nQUIT\n\041\021\000\022\300\000\002\001\300\000\002\002\334\004\001\273\002\377\377\303\274\000'
seed FuzzSocksServer name '\005\001\000\005\001\000\003\001a\000P'
seed FuzzSocksServer password '\005\002\000\002\001\001u\001p\005\001\000\001\300\000\002\001\000P'
seed FuzzSocksServer dot '\005\001\000\005\001\000\003\012a.example.\000P'
seed FuzzSocksServer bytes '\005\001\002\001\002\303\274\001\377\005\001\000\003\003\303\274.\377\377'
seed FuzzSocksServer lines '\005\001\000\005\001\000\003\011a\r\nB: c\000\000\000'
seed FuzzSocksServer long '\005\377\000\005\001\000\003\377a'
seed FuzzPathPattern digest '/v2/*/blobs/sha256:{hex:4}\n/v2/a/b/blobs/sha256:00ff'
seed FuzzPathPattern words '*/{name}-{version}.{jar|pom}{|.sha1}\n/a/b-1.jar.sha1'
seed FuzzPathPattern bytes '/a/{name}\n/a/\303\274%%c3%%bc\377'
seed FuzzPathPattern numbers '/a/{hex:18446744073709551616}{digits:99999999999999999999}\n/a/00'
seed FuzzPathPattern dots '/a/*\n//a/%%2e%%2E/..;/%%61/.%%2e/b'
seed FuzzReleaseIndex npm '0{"versions":{"1.0.0":{},"2.0.0":{}},"time":{"2.0.0":"2999-01-01"},"dist-tags":{"latest":"2.0.0"}}'
seed FuzzReleaseIndex python '1{"files":[{"filename":"a-1.0.zip","upload-time":"2999-01-01T00:00:00Z"}],"versions":["1.0"]}'
seed FuzzReleaseIndex integrity '0{"versions":{"1.0.0":{"dist":{"tarball":"/a.tgz","integrity":"sha1-AA== sha512-H0D8ktokFpR1CXnubPWC8tXX0o4YM13gWrxU0FYOD1MChgxlK/CNVgJSql50IQVG82n7u86MEs/HlXsmUv6adQ=="}}}}'
seed FuzzReleaseIndex page '1<a href="../a?b&amp;c#sha256=ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb">'
seed FuzzChallenges several 'Digest realm="a, b", nonce="n", algorithm=SHA-256, qop="auth,auth-int" , ,Basic realm="\\"x"\nNegotiate YQ==\nNTLM'
seed FuzzProxyAuthorization digest 'Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", algorithm=MD5, nonce="7ypf", nc=00000001, cnonce="f2/w", qop=auth, response="8ca523f5e9506fed4657c9700eebdbec", opaque="FQhe"'
seed FuzzProxyAuthorization extended "Digest username*=UTF-8''J%%C3%%A4, realm=r, uri=/, algorithm=SHA-256, nonce=n, nc=0000000a, cnonce=c, qop=auth-int, response=0"
seed FuzzProxyAuthorization basic 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=='
seed FuzzTokens signed '0eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJpIiwiYXVkIjoiYSIsInN1YiI6InMiLCJleHAiOjIwMDAwMDAwMDB9.c2ln'
seed FuzzTokens claims '1{"iss":"i","aud":["a"],"sub":"s","exp":2e9,"nbf":1,"iat":1.5,"g":["x","y z"]}'
seed FuzzTokens times '1{"iss":"i","aud":"a","sub":"s","exp":9223372036854775807,"nbf":-9223372036854775808,"iat":-1e300}'
seed FuzzTokens fractions '1{"iss":"i","aud":"a","sub":"s","exp":9007199254740993.5,"nbf":18446744073709551616,"iat":0.5}'
seed FuzzTokens keys '2{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"k","use":"sig"},{"kty":"EC"}]}'
seed FuzzTokens file '3ci:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 groups=a,b expires=2027-01-01'
seed FuzzNTLM example 'NTLMSSP\000\002\000\000\000\014\000\014\000\070\000\000\000\063\202\212\342\001#Eg\211\253\315\357\000\000\000\000\000\000\000\000$\000$\000D\000\000\000\006\000p\027\000\000\000\017S\000e\000r\000v\000e\000r\000\002\000\014\000D\000o\000m\000a\000i\000n\000\001\000\014\000S\000e\000r\000v\000e\000r\000\000\000\000\000'
seed FuzzNTLM time 'NTLMSSP\000\002\000\000\000\000\000\000\000\000\000\000\000\063\202\212\342\001#Eg\211\253\315\357\000\000\000\000\000\000\000\000\030\000\030\000\060\000\000\000\007\000\010\000\000\021"\063DUfw\006\000\004\000\001\000\000\000\000\000\000\000'
seed FuzzPlaceholders json '{"a": {"b": "\001"}, "x": "%%67hp_\\u0051"}'
seed FuzzPlaceholders form 'k=\001&x=\002 abab%%2F%%2B'
seed FuzzPlaceholders target '/a/\001?k=\001'
seed FuzzSocks plain '\005\000\005\000\000\001\001\002\003\004\000\120'
seed FuzzSocks named '\005\002\001\000\005\000\000\003\001a\000\120rest'
seed FuzzSocks bytes '\005\000\005\000\000\003\003\303\274.\377\377HTTP'
seed FuzzSocks longest '\005\002\001\000\005\000\000\003\377a'
seed FuzzSocks six '\005\000\005\000\000\004\040\001\015\270\000\000\000\000\000\000\000\000\000\000\000\001\377\377x'
seed FuzzHostsFile plain '# a\n127.0.0.1 localhost A.example. a.example\n::1\tlocalhost\r\n10.0.0.1\n\n x y\n'
seed FuzzTimeZone utc 'TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4\0\0\0\0\0\0UTC\0TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4\0\0\0\0\0\0UTC\0\nCET-1CEST,M3.5.0,M10.5.0/3\n'
seed FuzzDNSAnswer address '\201\200\000\001\000\001\000\000\000\000\300\014\000\001\000\001\000\000\000\074\000\004\300\000\002\007'
seed FuzzDNSAnswer alias '\201\200\000\001\000\002\000\000\000\000\300\014\000\005\000\001\000\000\000\074\000\003\001b\000\001b\000\000\001\000\001\000\000\000\074\000\004\300\000\002\007'
seed FuzzDNSAnswer cut '\203\200\000\001\000\001\000\000\000\000\300\014\000\034\000\001'
seed FuzzDNSAnswer lifetime '\201\200\000\001\000\001\000\000\000\000\300\014\000\001\000\001\377\377\377\377\000\004\300\000\002\007'
seed FuzzDNSAnswer never '\201\200\000\001\000\001\000\000\000\000\300\014\000\001\000\001\200\000\000\000\000\004\300\000\002\007'
seed FuzzDNSAnswer counts '\201\200\000\001\377\377\377\377\377\377\300\014\000\001\000\001\000\000\000\000\000\004\300\000\002\007'
seed FuzzDNSAnswer bytes '\201\200\000\001\000\002\000\000\000\000\300\014\000\005\000\001\000\000\000\074\000\005\002\303\274\001\056\000\002\303\274\001\056\000\000\001\000\001\000\000\000\074\000\004\300\000\002\007'
seed FuzzDNSAnswer itself '\201\200\000\001\000\001\000\000\000\000\300\014\000\005\000\001\377\377\377\377\000\002\300\014'
seed FuzzCookies lines '0a=b; Domain=a.example; Path=/x; Max-Age=60\nc="d"; Secure; HttpOnly; SameSite=Lax; Expires=Sun, 06-Nov-94 08:49:37 GMT'
seed FuzzCookies file '1#HttpOnly_.a.example\tTRUE\t/\tTRUE\t1893456000\tSID\t31d4\nb.example\tFALSE\t/x\tFALSE\t0\ta\t'
seed FuzzCookies ages '0a=b; Max-Age=9223372036854775808\nc=d; Max-Age=-99999999999999999999; Expires=Fri, 31-Dec-9999 23:59:59 GMT'
seed FuzzCookies times '1.a.example\tTRUE\t/\tTRUE\t18446744073709551615\tSID\t1\n.b.example\tTRUE\t/\tTRUE\t9223372036854775808\tSID\t1'
seed FuzzPACAnswer ways 'PROXY a.example:3128; HTTPS [2001:db8::1]; SOCKS5 1.2.3.4:1 ;DIRECT;'
seed FuzzPACAnswer message '\000\000\000\006\004DIRECT'
seed FuzzPACAnswer question '\000\000\000\006\002\000\001a.b'
seed FuzzPACAnswer list 'a.example, .b:80 [::1]:1 10.0.0.0/8,*'
# Way, then what it makes a head part of: see FuzzDiskRecord.swift.
seed FuzzDiskRecord object '\002\001\001\000\003\001abc\000\000\000\000\000\000\000\000\310\000\001a\001\000\000\000\003tagHEAD'
seed FuzzDiskRecord large '\002\003\002\000\003\001abc\000\000\000\000\000\000\000\000\310\000\000\000\000\000\000HEAD'
seed FuzzDiskRecord long '\002\003\002\000\003\001abc\377\377\377\377\017\000\000\000\310\000\000\000\000\000\000HEAD'
seed FuzzDiskRecord drops '\002\002\000\001\000\000\001\000\000\000\000\000\000\000\007\000\000\000\000\000\000\000'
seed FuzzDiskRecord raw '\001LREC\001\001\001'
# Way, which key; flags, bytes of the type, status, stored at, expires at, tags; place: see FuzzDiskBook.swift.
seed FuzzDiskBook entry '\002\000\010\001\310\000\001\000\000\000\000\000\000\000\002\000\000\000\000\000\000\000\001\000\000\000a\003tag\005\000\000\000\000\001\000\000\200\000\000\000\020\000\000\000\000\000\000\000'
seed FuzzDiskBook times '\002\000\010\001\310\000\377\377\377\377\377\377\377\177\000\000\000\000\000\000\000\200\001\000\000\000a\003tag\005\000\000\000\377\377\377\377\000\200\000\000\377\377\377\377\377\377\377\077'
seed FuzzDiskBook cut '\002\003\020\000\310\000\001\000\000\000\000\000\000\000\002\000\000\000\000\000\000\000\000\000\000\000\005\000\000\000\000\001\000\000\200\000\000\000\020\000\000\000\000\000\000\000http://a.example/'
seed FuzzDiskBook segment '\002\001\000\020\000\000\000\000\000\000\001'
seed FuzzDiskBook key '\000https://www.a.example:8443/b?c*en'
seed FuzzDiskBook order '\001\020example.a.!\000\120h/b'
seed FuzzText quotes "'DELETE' #X !t *a &b \\"c\\" d: e"
seed FuzzText marks '"\314\201\\\330\200<\342\200\250\302\205\r\n'
seed FuzzText terminal 'a\033]0;x\007\302\2331m\342\200\256b\363\260\200\200\r\nc'
seed FuzzText words '\047\314\201; rm -rf $(x) `y` #\000\\'
seed FuzzText tags '<\314\201script>&amp;"\330\200>'
seed FuzzText bytes '\377\200a"\\%%41'
seed FuzzRedis replies '+OK\r\n-ERR x\r\n:7\r\n$5\r\nhello\r\n$-1\r\n*-1\r\n'
seed FuzzRedis stream '*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n5-0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n'
seed FuzzRedis billion '*1000000000\r\n$1\r\n'
seed FuzzRedis numbers ':9223372036854775807\r\n:-9223372036854775808\r\n:9223372036854775808\r\n$9223372036854775807\r\nx\r\n*-9223372036854775808\r\n'
seed FuzzRedis lengths '$-9223372036854775808\r\n$+5\r\nhello\r\n$18446744073709551621\r\nhello\r\n'
seed FuzzRedis counts '*9223372036854775807\r\n*-2\r\n*4294967297\r\n:1\r\n'
seed FuzzRedis bytes '+\303\274\377\r\n-ERR \200\r\n$2\r\n\377\376\r\n'
# What the rest is, then the bytes: see FuzzFleet.swift.
seed FuzzFleet record '1\000\310\000LLLL\020\021\022\023\024\025\026\027\030\031\032\033\034\035\036\037\000\361Se\000\000\000\000<\361Se\000\000\000\000\003\000\000\000\001\000\000\000\004\000\000\000\001\002\001\000ztt\003tagkHEADabc'
seed FuzzFleet purge '2version\0011\001node\001a\001number\0017\001at\0011700000000\001purge\001tag=x'
seed FuzzFleet id '31700000000000-0'
seed FuzzFleet end '318446744073709551615-18446744073709551615'
seed FuzzFleet position '41700000000000-0 run'
seed FuzzFleet question '6 node=a at=1700000000000-0%%20run client=10.1.2.3 user=x%%20y scheme=Basic group=g only=store'
seed FuzzFleet report '5node=a run=1f release=0.1.0 started=1700000000 said=1700000005000 number=2 requests=17 later=x'
seed FuzzFleet times '5node=a run=1f release=0.1.0 started=9223372036854775807 said=9007199254740991 number=18446744073709551615 requests=18446744073709551615'

for target in "$@"; do
    # Some look at what is not for others.
    swift build -c release -Xswiftc -enable-testing --package-path "$here/.." --scratch-path "$scratch" --product "$target"
    mkdir -p "$here/FailCases/$target" "$corpus/$target"
    # The side table of an object with weak references looks like a leak: the only pointer to it is encoded.
    leaks=1
    [ "$target" = FuzzDNSAnswer ] && leaks=0
    ASAN_OPTIONS=detect_leaks=$leaks "$scratch/release/$target" "$limit" -max_len=1024 -timeout=5 -print_final_stats=1 \
        -artifact_prefix="$here/FailCases/$target/" "$corpus/$target" "$here/FailCases/$target"
done
