"""Golden vectors of the default model: three texts and where they must land.

Owns the reference only; ``default_model`` compares at every start, so that a CPU whose int8 kernels misbehave, a
changed operator or a damaged tokenizer is noticed before a single wrong vector is stored. The reference is the float32
encoder with the same 4-bit weights dequantised; measured against it, i8 reaches a cosine of .9965 to .9978 on these
three texts, q4 .9999 (x86-64 with VNNI, onnxruntime 1.32).
"""

from __future__ import annotations

from memxd.embed.manifest import Golden

#: Lowest cosine with the reference that a healthy variant reaches, with room for other CPUs' rounding.
E5_MINIMUM = {"i8": 0.99, "q4": 0.998}

#: Prefix included in the text; vectors as base64 of little-endian float16, 384 values.
E5_GOLDEN = (
    Golden(
        text="query: Which train does Anna take to work on Mondays?",
        vector=(
            "VyzLq0qmgyfhK3eodyr7JMad4SwFKnIohiZ0rVGqjSyQLNyhziMgrJKj3yCNrO8osJU2LXGp5qOIKsespqssraMnyawAJ7AnUaws"
            "rB0pQKewpiMsjysdKqorGy6QqgosgqWTn2OrSSOeLQ4qHCwumb2qtqvdq5oj4S1irAEgMKlALcMnTiv6KwOstquHqEEnURMqq4Kk"
            "sChOKfys1xnFqi+ojKVlpg0rLatqLLiYQqdNLSGsnSN1KNuoVqs8rVyrwaMBqD4ltqqnKOapxiplphesGipPK6+qfyjCqqyp2ijV"
            "LFwt26fap28UDKzlK+OlIiuro6GuxKp8o5KmJx5VKUgtdyhcKOYhqiveIUsdGiAqqHOmlBv3qlyoqC1UqIQopSv+JPIsA6s4LIKr"
            "DikTnTArriptItqr+qz/pi6fIS1grMSsS60ZqFCp+aT+KgkqY6GrqnWo2CSVrCgpTSLzKpmkkCQZLegpL52AqeGoyqjkrEqq8KaX"
            "JkEppqggo9gjphR2rFyeDC6lrIMpXSd+LHOq2aXyKrkpiywkIeOsSCoPqy4rBiqmq0eq9i3AqbGp/ye+JtmfKS1JLwirDyhJrCCt"
            "uisUKuqkW5z5K2qp9qSYrA+ts6jLI2qjchqRKsetYq7dqkwk/q1dLEOs5qOKJ0KjXynrK0+p0asRrWAqZykAKjQrP65AJ30lkSDA"
            "K/wruipBKVarT6CVrNOnlq3ILGYst6lmq8+rOSe7LLykJJ23KyQq06FTLjkk2ajqoAIkYKwUqiyqUKuWLOYbvCmZJICkpCsirJ6d"
            "gaopqPkq1iyLq4kkM6QzKlAkwCOLKYQsw6DZrGor8y3onSYoS6uTqbKq6KqLrPWlfyh2of2tK6hOJUoo+iXOqjeqjywcrOeoAaz/"
            "KuWo760UKDQlbKi1JqAkbK2HLEEk8qkrLJorQKyDJAcqt6i7It6cyKqRJsMhdqxpmWIlvaEjKSgos6inI7MlRqu7KisvVJyFJoqo"
            "5qqvoSwtyKnBq70psi2AKJgs"
        ),
    ),
    Golden(
        text="passage: 王伟每周三晚上七点在人民公园跑步，他对花生过敏。",
        vector=(
            "RixJnNGclqvBLpqhK6svJXstxCZ/KTGoISu3pRmu8iezLYCrE6FLrXAmOh4Gp+Qsvy6dKJWqKSR9LBqtUaRVqzInH6gOLcgpk6xd"
            "rVEmI6q5IJoedij7LqsokS2HqZom8qwZH8SqgyBgJsYpBSUfqsSiqqvprdUsiiyNoLMnxhjZLYUrGy6IKhusaJ31rNErGCHXqvEn"
            "YZVcKuup2SOVqSasjqNsqqsmMa4/IoopcquPLNIirCQXK8OkGquQrSWq2agxJx0s+54LLTyonqllrR6sai54LH+pgisLq/apAyx1"
            "Jq8okawCHY+oOquXKHmpzSXLqSCpuaTSqCysWSjWKF+oBZi0K+gotShFpF0ZFSsErcyYQqowqEOkhygkqrorQC2BKm4tHaoPK0+b"
            "zR/TqgEsdixkLICmFaRUqscrwirkqiCtCqwvqlGtHK0eJ68qAau/msckkCi/qLUoXSVpLFQi4iYBLDIoMh+Fod+MbKYFqg2m96CN"
            "J2sqhqkdF1wqtKmbp7WlOZAmrQQreykHKdwoT6o4JucohClhq/6tECefpUIqSSjPrH+r3yyMreUavBqILBqqMCOmJVmn/xyOrW8n"
            "hSfnKSAhUKzZK0isQKPNq0ysQ6twrU8qeRkELN2tByBBq6ulcKuuKUuoi6fMKbmkQyCSKIytE6gPrrGo/KSgLI4sA6jEJqggrpg0"
            "LZUsWy0sozeuSKQUrEWlYqlBJtUoIKt/rOSWGywILhesXKH2K0osUh+ZjhMsq6l/qDQpPKszoEqirB+VKsysjCN/pMkj4yxqqx4j"
            "KKi4ntUpniJDrgEumShppAEhgSNlLSEnnad7rLkEECjMJrwer5xopmComKkupUmrNS1PKq2o6apgLEEhFiVprCsRDCdMrTqnMK7X"
            "Kr+okKi2Jssv4qGvK/ynJaoYJHqpOqr4JYCgl69bHgkmlp8iKc2kgKsjLVUpBqwsIf0p5yaNLfIgX6agJSIdVq0+LE8sBayaKFWp"
            "gqpZq3kpzqgdrmgoaiwlLAgp"
        ),
    ),
    Golden(
        text=(
            "passage: The quarterly report GB-4711 was moved from October 15 to October 16, "
            "because の会議室 was taken; Søren will present it."
        ),
        vector=(
            "7igBqk2rsaj/KniplpzSLpEv1ad7LGQbXScxrK+ZhylZKG+kk6YtrYEmcaWVp0Enjyy7KjuolCOALGGvzK2Mq9EphaW4J78khqsU"
            "pgsmRavInGgnEiT6KxgqTyetqA0rWKjGqoan3SmnJmoU0yBtrCatwqmsrWssqSwLGoonAincLMYpr6EkKnyiQKaxrBQpLCP7HdAo"
            "pSp2Kriooqe1qWqrJ6gcpkQqfKkyLREoM6qOLDwiIylSLWqsIqrsqTetaaX4J9kruKjdJm6ngSizrLCqFygZmA2tfi0EqNanOCuU"
            "LBUo36jurEod56gBLDmmWi16npWebay0rFilcikDJDEqZqQfKfQnHSQgJj8u9C2mqYCq3I5Qq3umVikIqDcliijSKXEsi6mSLiqr"
            "8yPVrUAtQCs8K0KlUa0coSMqtiRPp+iphKruoWOsV6eEKrcqIazVod+o0ik+qgYmmaqqKI6lE542LEcrkahYpaenFqdEqc2p0qoM"
            "KmWes6aJoOcpBKtprY+t1ycwo2Aqci4BKVgmCKYNJTsobSVIKRKsxBoWqfUpPiqVrMmmHiktpjmpQ54mKSClFi1xKTYomCRqsNis"
            "9STWKris06BtJimY2arwqaqs76dxrOElqCwoKwmtdai3qlAojat8JxemlqjkJcWpXiPbJ9Ko5apyqcGqQiwiKCwuyKn8LLGk66bK"
            "MAorryq5LEClcqibrKWo0KxkIsMqzKiwrqaq3aIALp2nWatBMI6VMihwLYIqdqJkq7gqWKHXqIAf26poK5Os6yjkIi2jeS3Yq/If"
            "SKwjqHQpiyqbrYOjKSi4KxEm4ihOKdEgP6X9qLMsVijyKdwgQ6dQrc6pdKpyqoCsqCYmKpCp2KtELJgcvip2qYioMizupiGoLKgT"
            "KseoPa3NKFwtaqfTKB6koaxkKP2pjKecJMcsP66YJLgsH6gdKfKpkajmLccpTqsjJ/8gryoLK0sngakXpCgsb60YJH0qpK1LnWGn"
            "jqrkpSQsL6rhq9Yj1CoaJ1wt"
        ),
    ),
)
