"""Slides in Chinese with Latin words in between, as a PDF with a text layer: one topic a page."""

from __future__ import annotations

from pathlib import Path

import pymupdf

SLIDES = (
    ("阿里云 APSARA 云平台概览", "飞天 APSARA 操作系统管理全球的数据中心", "面向企业客户的公共云与专有云"),
    ("专有网络 VPC", "用户自己定义的隔离网络环境", "交换机、路由表和安全组", "企业可以按业务划分网段"),
    (
        "云企业网 CEN",
        "在不同地域的 VPC 之间建立私网通信通道",
        "云企业网自动分发路由并按带宽包计费",
        "Bandwidth package",
    ),
    ("负载均衡 SLB", "把访问流量分发到多台服务器", "健康检查与会话保持", "Load balancing for web services"),
    ("弹性计算 ECS", "几分钟内创建或释放云服务器", "按量付费与包年包月", "Elastic compute instances"),
    ("对象存储 OSS", "海量、安全、低成本的存储服务", "标准、低频与归档三种类型", "Object storage lifecycle rules"),
    ("关系型数据库 RDS", "支持 MySQL、PostgreSQL 与 SQL Server", "自动备份和主备切换", "Read-only replicas"),
    ("内容分发网络 CDN", "把内容缓存到离用户最近的节点", "减少回源并加快访问速度", "Edge caching"),
    ("安全防护", "高防 IP 抵御 DDoS 攻击", "Web 应用防火墙拦截注入与跨站脚本", "Denial of service protection"),
    ("机器学习平台 PAI", "可视化建模与分布式训练", "在线预测服务", "Distributed training of deep models"),
    ("函数计算", "无需管理服务器即可运行代码", "按调用次数计费", "Serverless functions triggered by events"),
    ("容器服务 Kubernetes", "托管的集群与镜像仓库", "滚动升级和自动伸缩", "Rolling updates of containers"),
    ("客户案例:零售企业", "双十一期间的弹性扩容", "会员数据与订单系统迁移上云", "Retail customer story"),
    ("总结与问答", "按需使用、按量付费", "联系我们的解决方案架构师", "Contact a solution architect"),
)
CLOUD_ENTERPRISE_NETWORK = 3
"""The page about 云企业网; its characters stand in pairs on other pages as well (企业, 网络)."""


def draw_slides(path: Path) -> None:
    document = pymupdf.open()
    for title, *lines in SLIDES:
        page = document.new_page(width=720, height=405)
        page.insert_text((50, 80), title, fontname="china-s", fontsize=32)
        for number, line in enumerate(lines):
            page.insert_text((70, 150 + 50 * number), line, fontname="china-s", fontsize=20)
    document.save(path)
