"""Texts in which offsets easily go wrong, each under the name of its difficulty."""

from __future__ import annotations

TEXTS = {
    "emoji with joiners": (
        "My 👩\u200d👩\u200d👧\u200d👦 family 😀😀 wants a refund 👍🏽! The flag 🇩🇪🇫🇷 and the "
        "🏳️\u200d🌈, press 5️⃣ or #️⃣."
    ),
    "combining marks": (
        "Le cafe\u0301 e\u0301tait ferme\u0301, je veux e\u0302tre rembourse\u0301! "
        "A\u030angstro\u0308m, Viê\u0323t Nam."
    ),
    "composed marks": "Le café était fermé, je veux être remboursé! Ångström, Việt Nam.",
    "stacked marks": (
        "He "
        "Z\u0351\u036b\u0343\u036a\u0302\u036ba\u0310\u0308\u0301l\u030d\u0311g\u0300\u0302o\u0315 "
        "said: r\u0301e\u0301fund."
    ),
    "chinese": "我想要退款。订单号是12345，请尽快处理！谢谢。",
    "japanese": "カタカナとひらがなの漢字、返金をお願いします。ﾊﾝｶｸもあります！",
    "korean": "환불을 요청합니다. 주문 번호는 12345입니다, 감사합니다!",
    "decomposed korean": (
        "\u1112\u116a\u11ab\u1107\u116e\u11af\u110b\u1173\u11af \u110b\u116d\u110e\u1165\u11bc."
    ),
    "arabic": "أريد استرداد المبلغ، من فضلك! رقم الطلب ١٢٣٤٥؟ العَرَبِيَّةُ",
    "hebrew with marks of direction": (
        "\u202bאני רוצה החזר כספי\u202c, \u200fבבקשה\u200f! "
        "צה״ל וג׳ירפה \u2067order 12\u2069 ש\u05b8\u05c1לו\u05b9ם."
    ),
    "thai": "ฉันต้องการขอคืนเงิน กรุณาติดต่อกลับ (order 12) ขอบคุณครับ",
    "hindi": "मुझे पैसे वापस चाहिए। क्षत्रिय, कृपया!",
    "windows lines": "First line\r\nsecond line,\r\n\r\nthird line.\r\n",
    "tabs": "\tname\tJane\t\t(Doe)\n\torder\t12\t",
    "no-break spaces": "10\u00a0km \u00a0away,\u202fplease\u2007wait\u3000here\u2009!",
    "zero-width characters": (
        "\ufeffre\u200bfund re\u200cfund re\u200dfund \u2060please\u2060 now\u200b"
    ),
    "a word of 5,000 characters": f"before {'a' * 5000} after, and {'loooo' * 50}ng.",
    "a url of 300 characters": (
        f"See https://example.com/{'path/' * 40}?id={'a1b2c3d4e5' * 7}&x=%20#top, please."
    ),
    "only punctuation": "?! ... \u2014 () \u2026 \u201c\u201d \u00bf\u00a1 #\ufe0f",
    "punctuation around words": (
        "\u00bf\u00a1\u201cHello\u201d!? ('world') \u2014 \u2018all of "
        "\u2019em\u2019 "
        "\u00ab\u202foui\u202f\u00bb\u2026 "
        "no\u203c [refund], {please}; *now* 'apple' 50% $5."
    ),
    "outside the bmp": "𝓡𝓮𝓯𝓾𝓷𝓭 𝟙𝟚𝟛 please, 𠮷野家 and 𐐷𐑊, 🂡 𝄞 music. 😀refund😀",
    "soft hyphens": "re\u00adfund re\u00adquest\u00ad, \u00adplease co\u00adope\u00adrate.",
    "ligatures": "The oﬃce oﬀers a ﬁne ﬂoor, ﬆill eﬃcient. ㎏ ℃ Ⅷ ﷺ ½ x² ①.",
    "fullwidth": "Ｒｅｆｕｎｄ　ｒｅｑｕｅｓｔ，　１２３！　＃タグ　（ｐｌｅａｓｅ）",
    "turkish": "İstanbul'dan İade istiyorum, ığdır IĞDIR İİİ! Straße GROẞ ŉ ǰ ΐ.",
    "apostrophes": (
        "I can't, won\u2019t, o'clock, rock 'n' roll, l\u2019Avenue, the dogs\u2019 "
        "house, \u2019twas, it''s."
    ),
    "numbers": "3.14 and 1,000.50, v2.0.1, 10:30, +49 (0)30 123-456, 50%, e-mail a.b@c.de.",
    "long turn": " ".join(f"Word😀 nu\u0301mber, {number}!" for number in range(120)),
}
